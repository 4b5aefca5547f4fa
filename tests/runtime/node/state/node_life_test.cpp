// tests/runtime/node/state/node_life_test.cpp -- how a node ends, without a
// node.
#include "runtime/node/state/node_life.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <future>

namespace shoal::runtime {

using namespace std::chrono_literals;

namespace {

/// A life whose parts are a counter.
struct lived final : life_handler {
  void end_parts() override {
    ++ends;
    if (waits)
      hung.get_future().wait();
  }
  void stopped(const std::string& text) override { why = text; }
  void hangs() override { hung.set_value(); }

  bool waits = false; ///< for the watchdog
  std::atomic<int> ends{0};
  std::string why; ///< read after the end
  std::promise<void> hung;
};

} // namespace

BOOST_AUTO_TEST_SUITE(node_lives)

BOOST_AUTO_TEST_CASE(a_node_that_is_stopped_ends_its_parts_once) {
  lived l;
  {
    node_life life(l);
    life.started();
    life.stop();
    BOOST_TEST(life.wait_stopped(0ms));
    BOOST_TEST(!life.failed());
  }
  BOOST_TEST(l.ends == 1);
  BOOST_TEST(l.why == "stopped");
}

BOOST_AUTO_TEST_CASE(a_node_that_could_not_start_says_nothing_of_its_end) {
  lived l;
  {
    node_life life(l);
    life.abandon();
  }
  BOOST_TEST(l.ends == 1);
  BOOST_TEST(l.why == "");
}

BOOST_AUTO_TEST_CASE(a_node_that_leaves_since_it_must_has_failed) {
  lived l;
  node_life life(l);
  life.started();
  life.must_leave();
  BOOST_TEST(l.ends == 0);
  BOOST_TEST(life.leave(20s));
  life.left(true);
  BOOST_TEST(life.wait_stopped(20s));
  BOOST_TEST(life.failed());
  BOOST_TEST(l.why == "left");
}

BOOST_AUTO_TEST_CASE(a_failure_before_the_start_is_over_ends_the_node_then) {
  lived l;
  node_life life(l);
  life.fail("no disk");
  BOOST_TEST(l.ends == 0);
  life.started();
  BOOST_TEST(life.wait_stopped(20s));
  BOOST_TEST(life.failed());
  BOOST_TEST(l.ends == 1);
  BOOST_TEST(l.why == "stopped"); // the reason of a failure is reported where
                                  // it happens
}

BOOST_AUTO_TEST_CASE(a_node_leaves_until_the_nearest_deadline) {
  lived l;
  node_life life(l);
  life.started();
  BOOST_TEST(!life.release()); // it does not leave
  BOOST_TEST(life.leave(1h));
  BOOST_TEST(!life.leave(2h));
  BOOST_TEST(life.release());
  BOOST_TEST(!life.release()); // it is known
  BOOST_TEST(!life.ending());
  BOOST_TEST(!life.leave(0ms));
  BOOST_TEST(life.wait_stopped(20s));
  BOOST_TEST(l.why == "the deadline to leave is over");
}

BOOST_AUTO_TEST_CASE(the_end_reports_whether_the_others_know) {
  for (const bool clean : {true, false}) {
    lived l;
    node_life life(l);
    life.started();
    life.left(clean);
    BOOST_TEST(life.wait_stopped(20s));
    BOOST_TEST(l.why
               == (clean ? "left" : "left without the others' knowledge"));
  }
}

BOOST_AUTO_TEST_CASE(the_watchdog_acts_when_the_parts_do_not_end) {
  lived l;
  l.waits = true;
  node_life::config c;
  c.hung_shutdown_max = 1ms;
  node_life life(l, c);
  life.started();
  life.hang(); // the shorter time holds; else this waits for 15 s
  BOOST_TEST(!life.ending());
  life.stop();
  BOOST_TEST(l.why == "stopped");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
