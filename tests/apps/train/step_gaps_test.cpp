// tests/apps/train/step_gaps_test.cpp -- which steps a log lacks, in words.
#include "apps/train/step_gaps.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::apps {

BOOST_AUTO_TEST_SUITE(steps_of_a_log)

namespace {

step_gaps with(std::initializer_list<std::uint64_t> steps) {
  step_gaps out;
  for (const std::uint64_t step : steps)
    out.add(step);
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_whole_log_lacks_none_wherever_it_begins) {
  BOOST_TEST(step_gaps().text(10) == "");
  BOOST_TEST(with({1, 2, 3}).text(3) == "");
  BOOST_TEST(with({41, 42}).text(42) == "");
}

BOOST_AUTO_TEST_CASE(what_a_jump_leaves_out_is_named) {
  BOOST_TEST(with({452, 1599}).text(1599) == "steps 453 to 1598");
  BOOST_TEST(with({40, 41}).text(48) == "steps 42 to 48"); // the end is missing
  BOOST_TEST(with({40, 42}).text(48) == "steps 41, 43 to 48");
  BOOST_TEST(with({1, 3}).text(3) == "step 2");
  BOOST_TEST(with({1, 3, 4, 8}).text(8) == "steps 2, 5 to 7");
  BOOST_TEST(with({1, 3, 5, 7, 9, 11, 13}).text(13)
             == "steps 2, 4, 6, 8, 10 and others");
}

BOOST_AUTO_TEST_CASE(steps_that_come_later_fill_gaps) {
  BOOST_TEST(with({1, 6, 2, 3, 4, 5}).text(6) == "");
  BOOST_TEST(with({1, 6, 4}).text(6) == "steps 2 to 3, 5");
  BOOST_TEST(with({1, 6, 1, 6}).text(6) == "steps 2 to 5");
}

BOOST_AUTO_TEST_CASE(a_run_that_went_back_gave_up_what_came_after_its_end) {
  BOOST_TEST(with({1, 6, 1, 2}).text(2) == "");
  BOOST_TEST(with({1, 6, 1, 2}).text(4) == "steps 3 to 4");
}

BOOST_AUTO_TEST_CASE(a_log_may_lack_the_beginning) {
  step_gaps from_the_first;
  from_the_first.begin_after(0);
  from_the_first.add(1);
  BOOST_TEST(from_the_first.text(1) == "");
  step_gaps late;
  late.begin_after(0);
  late.add(294);
  BOOST_TEST(late.text(294) == "steps 1 to 293");
  step_gaps resumed;
  resumed.begin_after(7);
  resumed.add(10);
  BOOST_TEST(resumed.text(10) == "steps 8 to 9");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::apps
