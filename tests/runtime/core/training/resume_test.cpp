// tests/runtime/core/training/resume_test.cpp -- decisions from seals that need not fit
// each other: a peer that holds the key can send any that pass the codec.
#include "tests/runtime/core/training/wild_seals.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

namespace shoal::test {

/// Some 20 us each.
constexpr std::uint64_t seeds = 20'000;

BOOST_AUTO_TEST_SUITE(resume)

BOOST_AUTO_TEST_CASE(any_seals_lead_to_a_decision_that_can_be_carried_out) {
  std::array<std::uint64_t, 4> seen{};
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 engine(seed);
      const tests::sealed_place s = tests::wild_seals(
        [&](std::uint64_t n) { return n == 0 ? 0 : engine() % n; });
      BOOST_REQUIRE_NO_THROW(tests::check_decision(s));
      ++seen[std::size_t(core::decide_resume(s.place, s.blocks, s.origin_step,
                                             s.interval, s.seals)
                           .from)];
    }
  BOOST_TEST(seen[1] > seeds / 100); // live, checkpoint, origin
  BOOST_TEST(seen[2] > seeds / 100);
  BOOST_TEST(seen[3] > seeds / 100);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
