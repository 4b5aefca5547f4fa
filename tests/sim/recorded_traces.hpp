// tests/sim/recorded_traces.hpp -- compares runs with their recorded traces.
//
// A refactoring that changes what a run does, or the order in which it draws
// random numbers, changes its trace. `meson test -C build --suite traces`
// checks those of a few seeds of each simulation, in seconds.
//
// A change that is meant to change runs fails there, too: the test prints the
// traces as they are now. Run more seeds first (`--suite sim`), then put the
// new ones where the old ones are, in the same commit.
#pragma once

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

namespace shoal::sim {

/// Recorded traces, and seeds that find something, are for GCC: the compiler
/// decides in which order arguments are evaluated, and so random numbers drawn.
#if defined(__clang__)
inline constexpr bool seeds_hold = false;
#else
inline constexpr bool seeds_hold = true;
#endif

/// For boost::unit_test::precondition.
inline boost::test_tools::assertion_result
traces_hold(boost::unit_test::test_unit_id) {
  return seeds_hold;
}

/// @param recorded of seeds 1, 2, ...
/// @param trace_of runs a seed
template <class Run>
void check_traces(std::span<const std::uint64_t> recorded, Run trace_of) {
  std::string lines, others;
  for (std::uint64_t seed = 1; seed <= recorded.size(); ++seed) {
    const std::uint64_t trace = trace_of(seed);
    if (trace != recorded[seed - 1])
      others += " " + std::to_string(seed);
    char text[32];
    std::snprintf(text, sizeof text, "  0x%016llx,\n",
                  static_cast<unsigned long long>(trace));
    lines += text;
  }
  BOOST_TEST(others.empty(), "seeds" << others
                                     << " run in another way than recorded. If "
                                        "that is meant, record the traces anew "
                                        "(recorded_traces.hpp), which are now\n"
                                     << lines);
}

} // namespace shoal::sim
