// tests/runtime/node/state/node_life_test.cpp -- how a node ends, without a
// node.
#include "runtime/node/state/node_life.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <future>
#include <thread>

namespace shoal::runtime {

using namespace std::chrono_literals;

namespace {

/// A life whose parts are a counter.
struct lived final : life_handler {
  bool is_needed() override { return asked++ < needed; }
  void end_parts() override {
    ++ends;
    if (waits)
      hung.get_future().wait();
  }
  void stopped(const std::string& text) override { why = text; }
  void hangs() override { hung.set_value(); }
  void silent(const std::string& part) override { silent_part = part; }

  int needed = 0;     ///< this often
  int asked = 0;      ///< read after the end
  bool waits = false; ///< for the watchdog
  std::atomic<int> ends{0};
  std::string why;         ///< read after the end
  std::string silent_part; ///< read after the end
  std::promise<void> hung;
};

/// A life that looks all the time, so that nothing here waits.
node_life::config impatient() {
  node_life::config c;
  c.look_every = 1ms;
  c.hung_shutdown_max = 1ms;
  return c;
}

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

BOOST_AUTO_TEST_CASE(a_node_that_has_left_ends_when_it_is_not_needed) {
  for (const bool stopped : {false, true}) {
    lived l;
    l.needed = stopped ? 1 << 30 : 3;
    node_life::config c = impatient();
    c.needed_every = 1ms;
    node_life life(l, c);
    life.started();
    BOOST_TEST(life.leave(1h));
    life.left(true);
    if (stopped)
      life.stop(); // at once
    BOOST_TEST(life.wait_stopped(20s));
    BOOST_TEST(l.ends == 1);
    BOOST_TEST(l.why == "left");
    BOOST_TEST((stopped || l.asked == 4));
  }
  lived late;
  late.needed = 1 << 30;
  node_life life(late);
  life.started();
  BOOST_TEST(life.leave(100ms));
  life.left(true);
  BOOST_TEST(life.wait_stopped(20s));
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

BOOST_AUTO_TEST_CASE(a_node_whose_work_hangs_ends_even_if_nobody_ends_it) {
  lived l;
  node_life life(l, impatient());
  life.started();
  life.hang(); // the thread that finds that may be stuck before it prints
  l.hung.get_future().wait();
  BOOST_TEST(!life.ending()); // the watchdog alone has acted
}

BOOST_AUTO_TEST_CASE(a_part_that_shows_no_life_ends_the_node) {
  lived l;
  l.waits = true; // as the end of such a part does
  node_life life(l, impatient());
  const auto first = life.expect_sign("the first");
  const auto second = life.expect_sign("the second");
  std::atomic<bool> over = false;
  std::thread alive([&] { // gives its sign in every look
    while (!over) {
      second->give();
      std::this_thread::yield();
    }
  });
  life.started();
  BOOST_TEST(life.wait_stopped(20s));
  over = true;
  alive.join();
  BOOST_TEST(life.failed());
  BOOST_TEST(l.ends == 1);
  BOOST_TEST(l.silent_part == "the first");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(signs_of_life)

BOOST_AUTO_TEST_CASE(silence_counts_from_the_last_sign) {
  life_signs signs;
  BOOST_TEST(!signs.look(1)); // nobody is watched
  const auto a = signs.add("a");
  const auto b = signs.add("b");
  BOOST_TEST(!signs.look(3));
  BOOST_TEST(!signs.look(3));
  a->give();
  BOOST_TEST(signs.look(3).value_or("") == "b");
  b->give();
  BOOST_TEST(!signs.look(3));
  BOOST_TEST(!signs.look(3));
  a->give();
  BOOST_TEST(!signs.look(3));
  BOOST_TEST(signs.look(3).value_or("") == "b");
}

BOOST_AUTO_TEST_CASE(a_question_is_answered_when_it_is_released) {
  const auto sign = std::make_shared<life_sign>();
  std::shared_ptr<void> question = ask(sign);
  BOOST_TEST(bool(question));
  BOOST_TEST(!ask(sign)); // one at a time: they would pile up
  BOOST_TEST(sign->given() == 0u);
  question.reset();
  BOOST_TEST(sign->given() == 1u);
  BOOST_TEST(bool(ask(sign)));
  BOOST_TEST(sign->given() == 2u); // dropped, which is an answer
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
