// tests/runtime/core/serving/replica_watch_test.cpp -- pipelines by load, on a
// simulated clock: a call each second.
#include "runtime/core/serving/replica_watch.hpp"

#include <boost/test/unit_test.hpp>

namespace replica_watches {

using namespace shoal::core;

namespace {

constexpr nanoseconds second = 1'000'000'000;

replica_watch::line at_work(std::uint32_t running, std::uint32_t waiting = 0) {
  replica_watch::line l;
  l.report.emplace();
  l.report->ready = true;
  l.report->per_s = 1000;
  l.report->running = running;
  l.report->streams = running + waiting;
  return l;
}

struct watched {
  replica_watch watch{3, {20 * second, 300 * second}};
  nanoseconds now = 0;
  std::uint32_t agreed = 1;

  /// What is proposed within `seconds`, and after how many of them.
  std::optional<std::pair<std::uint32_t, int>>
  run(const std::vector<replica_watch::line>& lines, int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now += second;
      if (const auto n = watch.look(agreed, lines, now))
        return std::pair(*n, i);
    }
    return std::nullopt;
  }
};

using proposal = std::optional<std::pair<std::uint32_t, int>>;

} // namespace

} // namespace replica_watches

BOOST_FIXTURE_TEST_SUITE(replica_watches, replica_watches::watched)

BOOST_AUTO_TEST_CASE(a_crowd_that_lasts_asks_for_one_more) {
  BOOST_TEST((run({at_work(4)}, 1000) == std::nullopt));
  BOOST_TEST((run({at_work(4, 1)}, 20) == std::nullopt));
  BOOST_TEST((run({at_work(4)}, 1) == std::nullopt)); // it is gone
  BOOST_TEST((run({at_work(4, 1)}, 100) == proposal({2, 20})));
}

BOOST_AUTO_TEST_CASE(it_is_proposed_again_until_it_is_agreed) {
  BOOST_TEST((run({at_work(4, 1)}, 100) == proposal({2, 20})));
  BOOST_TEST((run({at_work(4, 1)}, 100) == proposal({2, 0})));
  agreed = 2; // it is not placed yet
  BOOST_TEST((run({at_work(4, 1)}, 30) == std::nullopt));
}

BOOST_AUTO_TEST_CASE(a_crowd_is_long_waits_or_full_passes_or_no_pages) {
  replica_watch::line l = at_work(15);
  BOOST_TEST(!replica_watch::is_crowded(l));
  l.report->waiting = 1000; // a second
  BOOST_TEST(!replica_watch::is_crowded(l));
  l.report->waiting = 1001;
  BOOST_TEST(replica_watch::is_crowded(l));
  BOOST_TEST(replica_watch::is_crowded(at_work(16)));
  l = at_work(16);
  l.stages = 2; // two passes
  BOOST_TEST(!replica_watch::is_crowded(l));
  BOOST_TEST(replica_watch::is_crowded(at_work(1, 1)));
  l = at_work(1);
  l.report->per_s = 0;
  l.report->waiting = replica_watch::unmeasured_tokens_max;
  BOOST_TEST(!replica_watch::is_crowded(l));
  ++l.report->waiting;
  BOOST_TEST(replica_watch::is_crowded(l));
}

BOOST_AUTO_TEST_CASE(one_that_is_being_loaded_is_waited_for) {
  agreed = 2;
  replica_watch::line loads;
  BOOST_TEST((run({at_work(9, 9), loads}, 1000) == std::nullopt));
  loads.report.emplace();
  BOOST_TEST((run({at_work(9, 9), loads}, 1000) == std::nullopt));
  BOOST_TEST((run({at_work(9, 9), at_work(9, 9)}, 100) == proposal({3, 20})));
}

BOOST_AUTO_TEST_CASE(never_more_than_the_most) {
  agreed = 3;
  const auto full = at_work(9, 9);
  BOOST_TEST((run({full, full, full}, 1000) == std::nullopt));
}

BOOST_AUTO_TEST_CASE(calm_that_lasts_asks_for_one_fewer) {
  agreed = 3;
  BOOST_TEST((run({at_work(2), at_work(0), at_work(0)}, 300) == std::nullopt));
  // A short time of work begins it anew.
  BOOST_TEST((run({at_work(2), at_work(1), at_work(1)}, 1) == std::nullopt));
  BOOST_TEST(
    (run({at_work(2), at_work(0), at_work(0)}, 999) == proposal({2, 300})));
  agreed = 2;
  BOOST_TEST((run({at_work(2), at_work(0)}, 999) == proposal({1, 300})));
  agreed = 1;
  BOOST_TEST((run({at_work(0)}, 999) == std::nullopt));
}

BOOST_AUTO_TEST_CASE(load_between_crowd_and_calm_changes_nothing) {
  agreed = 2;
  BOOST_TEST((run({at_work(9, 9), at_work(1)}, 1000) == std::nullopt));
}

BOOST_AUTO_TEST_CASE(a_pipeline_that_members_do_not_allow_is_given_up) {
  agreed = 2;
  BOOST_TEST((run({at_work(9, 9)}, 60) == std::nullopt));
  BOOST_TEST((run({at_work(9, 9)}, 60) == proposal({1, 0})));
  agreed = 1; // nowhere: the model waits for members
  BOOST_TEST((run({}, 1000) == std::nullopt));
}

BOOST_AUTO_TEST_SUITE_END()
