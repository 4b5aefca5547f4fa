// tests/runtime/core/training/step_pace_test.cpp -- the speed of steps whose
// reports come bunched.
#include "runtime/core/training/step_pace.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(step_paces)

using namespace shoal::core;

namespace {

constexpr nanoseconds ms = 1'000'000;

} // namespace

BOOST_AUTO_TEST_CASE(steady_steps_take_what_they_take) {
  step_pace pace;
  for (int i = 0; i < 20; ++i)
    BOOST_TEST(pace.step(100 * ms) == 100 * ms);
}

/// Two steps arrive together each time: the run is as fast as before.
BOOST_AUTO_TEST_CASE(reports_that_come_bunched_invent_no_speed) {
  step_pace pace;
  for (int i = 0; i < 20; ++i) {
    BOOST_TEST(pace.step(200 * ms) <= 200 * ms);
    const nanoseconds mean =
      pace.step(0); // at the same moment as the one before
    BOOST_TEST(mean >= 100 * ms);
    BOOST_TEST(mean <= 120 * ms);
  }
}

BOOST_AUTO_TEST_CASE(a_run_that_becomes_slower_is_seen_after_a_few_steps) {
  step_pace pace;
  for (int i = 0; i < 20; ++i)
    pace.step(100 * ms);
  nanoseconds last = 0;
  for (std::size_t i = 0; i < step_pace::steps_kept; ++i)
    last = pace.step(900 * ms);
  BOOST_TEST(last == 900 * ms);
}

BOOST_AUTO_TEST_CASE(another_assignment_begins_anew) {
  step_pace pace;
  pace.step(900 * ms);
  pace.restart();
  BOOST_TEST(pace.step(100 * ms) == 100 * ms);
}

BOOST_AUTO_TEST_SUITE_END()
