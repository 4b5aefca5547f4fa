// tests/runtime/core/training/checkpoint_pace_test.cpp -- the steps at which
// checkpoints begin, and the largest loss.
#include "runtime/core/training/checkpoint_pace.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <vector>

BOOST_AUTO_TEST_SUITE(checkpoint_pace_steps)

using namespace shoal::core;
namespace bdata = boost::unit_test::data;

namespace {

/// A run on a disk that takes a number of steps for each checkpoint.
struct run_on_disk {
  std::vector<std::uint64_t> begun;
  std::vector<std::uint64_t> published; ///< the steps in progress then
  std::uint64_t lost_max = 0;   ///< steps that a death of all would have cost
  std::uint64_t lost_later = 0; ///< likewise, after the first ten
  bool slow = false;

  /// Steps between the begins of the n-th and the next.
  std::uint64_t gap(std::size_t n) const {
    return begun.at(n + 1) - begun.at(n);
  }
  std::uint64_t begun_between(std::uint64_t first, std::uint64_t last) const {
    return std::uint64_t(std::ranges::count_if(
      begun, [&](std::uint64_t s) { return s >= first && s < last; }));
  }
};

/// @param lag_of steps that the next checkpoint takes
template <class Lag>
run_on_disk run(std::uint64_t every, std::uint64_t steps, Lag lag_of) {
  checkpoint_pace pace(every);
  run_on_disk out;
  std::uint64_t safe = 0, ready = 0;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    // The step in progress may be committed just before the end of all.
    out.lost_max = std::max(out.lost_max, step - safe);
    if (out.begun.size() > 10)
      out.lost_later = std::max(out.lost_later, step - safe);
    if (step == ready) {
      safe = out.begun.back();
      pace.published(safe, step);
      out.published.push_back(step);
    }
    // The disk is busy until then, which the votes say.
    pace.heard(pace.lag(), step < ready);
    out.slow = out.slow || pace.slow(step);
    if (!pace.due(step))
      continue;
    pace.begun(step);
    out.begun.push_back(step);
    ready = step + lag_of();
  }
  return out;
}

/// Checkpoints take two steps, the tenth takes `lag`.
run_on_disk run_with_slow_one(std::uint64_t every, std::uint64_t lag) {
  std::uint64_t n = 0;
  return run(every, 200 * every, [&] { return ++n == 10 ? lag : 2; });
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
    BOOST_TEST(r.gap(1) == std::uint64_t(every - lag - 1));
}

/// Since none begins while the one before is written, no begin is early enough
/// where one takes more than half of the interval.
BOOST_DATA_TEST_CASE(a_disk_that_is_too_slow_gets_one_after_the_other,
                     bdata::make({26, 40, 49, 50, 60, 235}), lag) {
  const auto r =
    run(50, 10'000, [=] { return static_cast<std::uint64_t>(lag); });
  for (std::size_t n = 1; n + 1 < r.begun.size(); ++n)
    BOOST_TEST_REQUIRE(r.gap(n) == static_cast<std::uint64_t>(lag));
  BOOST_TEST(r.slow);
}

/// It is no reason for many more: they would push out the older ones that are
/// kept.
BOOST_DATA_TEST_CASE(a_slow_checkpoint_makes_few_more,
                     bdata::make({26, 40, 48, 49, 50, 51, 235, 3000}), lag) {
  const auto r = run_with_slow_one(50, static_cast<std::uint64_t>(lag));
  const std::uint64_t ready = r.published.at(9);
  BOOST_TEST(r.begun.at(10) == std::max(ready, r.begun.at(9) + 25));
  for (std::size_t n = 10; n + 1 < r.begun.size(); ++n)
    BOOST_TEST_REQUIRE(r.gap(n) >= 25u);
  // Ten are usual in 500 steps; one begins at once, two are more early ones.
  BOOST_TEST(r.begun_between(ready, ready + 500) <= 10u + 1 + 2);
  BOOST_TEST(r.gap(r.begun.size() - 2) == 47u);
}

/// Whatever the disk does, checkpoints come at most twice as often as wanted.
BOOST_AUTO_TEST_CASE(the_newest_ten_are_of_no_less_than_half_of_the_steps) {
  std::uint64_t x = 1;
  const auto r = run(50, 100'000, [&] {
    x = x * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t drawn = x >> 40;
    return drawn % 7 == 0 ? 1 + drawn % 300 : 1 + drawn % 5;
  });
  BOOST_TEST(r.begun.size() > 1000u);
  for (std::size_t n = 0; n + 9 < r.begun.size(); ++n)
    BOOST_TEST_REQUIRE(r.begun[n + 9] - r.begun[n] >= 9u * 25);
}

BOOST_AUTO_TEST_CASE(a_lag_that_varies_is_taken_at_its_largest) {
  std::uint64_t n = 0;
  const auto r = run(30, 20000, [&] { return 1 + 4 * n++ % 9; });
  BOOST_TEST(r.lost_later <= 30u);
  BOOST_TEST(!r.slow);
}

BOOST_AUTO_TEST_CASE(a_disk_that_cannot_keep_up_is_reported) {
  BOOST_TEST(run(10, 100, [] { return std::uint64_t{10}; }).slow);
  BOOST_TEST(run(10, 100, [] { return std::uint64_t{6}; }).slow);
  BOOST_TEST(!run(10, 100, [] { return std::uint64_t{5}; }).slow);
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
