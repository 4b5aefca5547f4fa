// tests/apps/terminal/orderly_stop_test.cpp -- a run that is to stop does, whatever its
// job does.
#include "apps/terminal/orderly_stop.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(orderly_stop_tests)

using namespace std::chrono_literals;
using shoal::apps::orderly_stop;
using action = orderly_stop::action;

namespace {

const orderly_stop::clock::time_point begin{};
const auto patience = orderly_stop::patience_min;

} // namespace

BOOST_AUTO_TEST_CASE(a_run_that_is_not_asked_goes_on) {
  orderly_stop s;
  BOOST_TEST((s.next(begin + 1000h) == action::none));
}

BOOST_AUTO_TEST_CASE(a_job_without_steps_is_ended_and_then_given_up) {
  orderly_stop s;
  s.ask(begin);
  s.ask(begin + 30s); // not longer for it
  BOOST_TEST((s.next(begin + patience - 1s) == action::none));
  BOOST_TEST(!s.at_once());
  BOOST_TEST((s.next(begin + patience) == action::end_at_once));
  BOOST_TEST(s.at_once());
  BOOST_TEST((s.next(begin + patience + 1s) == action::none)); // once
  BOOST_TEST(
    (s.next(begin + patience + orderly_stop::end_max) == action::give_up));
}

BOOST_AUTO_TEST_CASE(after_a_step_the_checkpoint_may_take_its_time) {
  orderly_stop s;
  s.stepped(begin);
  s.ask(begin + 1s);
  s.stepped(begin + 2s);
  BOOST_TEST((s.next(begin + 1000h) == action::none));
  BOOST_TEST(!s.at_once());
}

BOOST_AUTO_TEST_CASE(long_steps_are_waited_for) {
  orderly_stop s;
  s.stepped(begin);
  s.stepped(begin + 100s);
  s.ask(begin + 150s);
  const auto due = begin + 150s + orderly_stop::step_factor * 100s;
  BOOST_TEST((s.next(due - 1s) == action::none));
  BOOST_TEST((s.next(due) == action::end_at_once));
}

BOOST_AUTO_TEST_SUITE_END()
