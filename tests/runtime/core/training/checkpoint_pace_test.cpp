// tests/runtime/core/training/checkpoint_pace_test.cpp -- the steps at which
// checkpoints begin, and the largest loss.
#include "runtime/core/training/checkpoint_pace.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <vector>

BOOST_AUTO_TEST_SUITE(checkpoint_pace_steps)

using namespace shoal::core;
namespace bdata = boost::unit_test::data;

namespace {

/// A run on a disk that takes a number of steps, each time the next of `lags`.
struct run_on_disk {
  std::vector<std::uint64_t> begun;
  std::uint64_t lost_max = 0;   ///< steps that a death of all would have cost
  std::uint64_t lost_later = 0; ///< likewise, after the first ten
  bool slow = false;
};

template <class Lag>
run_on_disk run(std::uint64_t every, std::uint64_t steps, Lag lag_of) {
  checkpoint_pace pace(every);
  run_on_disk out;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> under_way;
  std::uint64_t published = 0;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    // The step in progress may be committed just before the end of all.
    out.lost_max = std::max(out.lost_max, step - published);
    if (pace.lag() > 0 && out.begun.size() > 10)
      out.lost_later = std::max(out.lost_later, step - published);
    std::erase_if(under_way, [&](const auto& c) {
      if (c.second > step)
        return false;
      pace.published(c.first, step);
      published = c.first;
      return true;
    });
    pace.heard(pace.lag(), false);
    out.slow = out.slow || pace.slow(step);
    if (!pace.due(step))
      continue;
    pace.begun(step);
    out.begun.push_back(step);
    under_way.emplace_back(step, step + lag_of());
  }
  return out;
}

} // namespace

BOOST_DATA_TEST_CASE(no_more_than_the_interval_is_lost,
                     bdata::make({2, 3, 5, 10, 500})
                       * bdata::make({1, 2, 4, 100}),
                     every, lag) {
  if (lag > every / 2) // before one has been seen, half is assumed
    return;
  const auto r =
    run(std::uint64_t(every), 5000, [=] { return std::uint64_t(lag); });
  BOOST_TEST(r.lost_max <= std::uint64_t(every));
  BOOST_TEST(!r.slow);
  // And no more often than that takes: one in reserve.
  if (every > 4)
    BOOST_TEST(r.begun[2] - r.begun[1] == std::uint64_t(every - lag - 1));
}

/// Half was too little: the first are late, later ones are not.
BOOST_AUTO_TEST_CASE(a_disk_that_takes_longer_is_learned) {
  const auto r = run(20, 5000, [] { return std::uint64_t{15}; });
  BOOST_TEST(r.lost_max > 20u);
  BOOST_TEST(r.begun[r.begun.size() - 1] - r.begun[r.begun.size() - 2] == 4u);
  BOOST_TEST(!r.slow);
}

BOOST_AUTO_TEST_CASE(a_lag_that_varies_is_taken_at_its_largest) {
  std::uint64_t n = 0;
  const auto r = run(30, 20000, [&] { return 1 + 4 * n++ % 9; });
  BOOST_TEST(r.lost_later <= 30u);
  BOOST_TEST(!r.slow);
}

BOOST_AUTO_TEST_CASE(a_disk_that_cannot_keep_up_is_reported) {
  BOOST_TEST(run(10, 100, [] { return std::uint64_t{10}; }).slow);
  BOOST_TEST(!run(10, 100, [] { return std::uint64_t{9}; }).slow);
}

/// None begins while the one before is written, and that is no reason to
/// complain before the bound is broken by it.
BOOST_AUTO_TEST_CASE(a_writer_is_not_overtaken) {
  checkpoint_pace pace(10);
  pace.resume(100, 3);
  BOOST_TEST(!pace.due(105));
  BOOST_TEST(pace.due(106));
  pace.heard(0, true);
  BOOST_TEST(!pace.due(106));
  BOOST_TEST(!pace.slow(107));
  BOOST_TEST(pace.slow(108));
  pace.heard(0, false);
  BOOST_TEST(pace.due(108));
  BOOST_TEST(pace.agreed_lag() == 3u);
}

BOOST_AUTO_TEST_CASE(none_but_the_last_is_due_without_an_interval) {
  checkpoint_pace pace(0);
  BOOST_TEST(!pace.due(1000));
  BOOST_TEST(!pace.slow(1000));
}

BOOST_AUTO_TEST_SUITE_END()
