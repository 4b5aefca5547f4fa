// tests/apps/common/metrics_log_test.cpp -- which lines of a log are the run's.
#include "apps/common/metrics_log.hpp"
#include "runtime/jobs/event_json.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace shoal::apps {

BOOST_AUTO_TEST_SUITE(metrics_of_a_run)

namespace {

constexpr std::uint64_t steps_max = 100;
/// What `recover --force` adds to the epochs.
constexpr std::uint64_t forced = 1'000'000;

/// Lines of the steps `first` to `last` of one plan. Their data is its epoch, so
/// that the tests see whose line was taken.
std::string steps(std::uint64_t first, std::uint64_t last, std::uint64_t epoch,
                  std::int64_t later = 0) {
  std::string out;
  for (; first <= last; ++first) {
    runtime::job_event e;
    e.kind = runtime::job_event_kind::step;
    e.step = first;
    e.epoch = e.data = epoch;
    e.unix_ms = std::int64_t(epoch) + later;
    out += runtime::to_json_line(e) + "\n";
  }
  return out;
}

std::string resumed() {
  runtime::job_event e; // a notice
  e.text = "resuming from out/checkpoint/step-4";
  return runtime::to_json_line(e) + "\n";
}

/// "1-3 of 7, 4 of 9": the steps, and the plans of their lines.
std::string taken(const std::string& log, std::uint64_t newest) {
  std::istringstream in(log);
  const metrics_log read = read_metrics(in, steps_max, newest);
  BOOST_TEST(read.impossible.count == 0u);
  std::string out;
  for (auto at = read.steps.begin(); at != read.steps.end();) {
    auto end = at + 1;
    while (end != read.steps.end() && end->data == at->data
           && end->step == (end - 1)->step + 1)
      ++end;
    out += (out.empty() ? "" : ", ") + std::to_string(at->step);
    if (end - at > 1)
      out += "-" + std::to_string((end - 1)->step);
    out += " of " + std::to_string(at->data);
    at = end;
  }
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_restore_gives_up_what_was_after_it) {
  BOOST_TEST(taken(steps(1, 5, 1) + steps(4, 7, 2), 7) == "1-3 of 1, 4-7 of 2");
  BOOST_TEST(taken(steps(1, 5, 1) + steps(3, 4, 2), 4) == "1-2 of 1, 3-4 of 2");
  BOOST_TEST(taken(steps(1, 5, 1) + steps(3, 4, 2), 0) == "1-2 of 1, 3-4 of 2");
}

// A log without epochs, or with lines of one that were written twice.
BOOST_AUTO_TEST_CASE(within_a_plan_the_file_has_the_order) {
  BOOST_TEST(taken(steps(1, 5, 0) + steps(3, 4, 0, 1), 5) == "1-4 of 0");
  BOOST_TEST(taken(steps(1, 5, 7) + steps(3, 4, 7), 5) == "1-5 of 7");
}

// h2 was forced at step 4 and went on from 2; h1 had gone on, too, up to 8,
// joined h2's shoal, and outlived it. The lines of h1's own branch came last,
// and gave up those of the branch that had been kept.
BOOST_AUTO_TEST_CASE(an_abandoned_branch_that_is_added_later_changes_nothing) {
  const std::uint64_t f = forced;
  const std::string h2 = steps(1, 4, 133) + steps(3, 6, f + 133)
                         + steps(7, 10, f + 135) + steps(9, 11, f + 136);
  const std::string left = steps(4, 8, 134);
  const std::string rest = steps(12, 12, f + 136) + steps(11, 14, f + 137);
  const std::string all =
    "1-2 of 133, 3-6 of 1000133, 7-8 of 1000135, 9-10 of 1000136, "
    "11-14 of 1000137";
  BOOST_TEST(taken(h2 + left + rest, 14) == all);
  BOOST_TEST(taken(h2 + left, 11)
             == "1-2 of 133, 3-6 of 1000133, 7-8 of 1000135, 9-11 of 1000136");
  std::vector<std::string> parts{h2, left, rest};
  std::ranges::sort(parts);
  do {
    BOOST_TEST(taken(parts[0] + parts[1] + parts[2], 14) == all);
  } while (std::ranges::next_permutation(parts).found);
}

// The shoal that was made by force died for good, and the other finished.
BOOST_AUTO_TEST_CASE(the_plan_that_reached_the_newest_checkpoint_counts) {
  const std::string lived = steps(1, 4, 1) + steps(4, 9, 2);
  const std::string died = steps(3, 6, forced + 1);
  BOOST_TEST(taken(lived + died, 9) == "1-3 of 1, 4-9 of 2");
  BOOST_TEST(taken(died + lived, 9) == "1-3 of 1, 4-9 of 2");
  BOOST_TEST(taken(lived + died, 6) == "1-2 of 1, 3-6 of 1000001");
}

// The newest checkpoint of both branches may be that of the abandoned one.
BOOST_AUTO_TEST_CASE(a_restore_may_take_the_other_branch) {
  const std::string kept = steps(3, 5, forced + 1) + steps(9, 12, forced + 3);
  const std::string left = steps(1, 3, 1) + steps(4, 8, 2);
  for (const std::string& log : {kept + left, left + kept})
    BOOST_TEST(taken(log, 12) == "1-3 of 1, 4-8 of 2, 9-12 of 1000003");
}

BOOST_AUTO_TEST_CASE(a_log_that_lacks_a_branch_has_its_steps_by_the_other) {
  const std::string log = steps(1, 3, 1) + steps(4, 8, 2);
  const std::string rest = steps(7, 9, forced + 3);
  BOOST_TEST(taken(log + rest, 9) == "1-3 of 1, 4-6 of 2, 7-9 of 1000003");
  // A part of what it lacks takes nothing away.
  for (const std::string& part :
       {steps(3, 4, forced + 1), steps(3, 3, forced + 3)})
    BOOST_TEST(taken(log + rest + part, 9)
               == "1-3 of 1, 4-6 of 2, 7-9 of 1000003");
  // Nor does a branch that was left earlier.
  BOOST_TEST(taken(steps(1, 5, 1) + steps(6, 9, forced + 1) + steps(3, 4, 2), 9)
             == "1-5 of 1, 6-9 of 1000001");
}

// As if a plan had left out steps that one before it had done.
BOOST_AUTO_TEST_CASE(in_one_shoal_what_was_given_up_fills_no_gap) {
  const std::string before = steps(1, 9, 1);
  BOOST_TEST(taken(before + steps(3, 4, 2) + steps(7, 9, 2), 9)
             == "1-2 of 1, 3-4 of 2, 7-9 of 2");
  BOOST_TEST(taken(before + steps(3, 4, 2) + steps(7, 9, 3), 9)
             == "1-2 of 1, 3-4 of 2, 7-9 of 3");
}

BOOST_AUTO_TEST_CASE(steps_that_no_line_has_are_missing) {
  BOOST_TEST(taken(steps(1, 3, 1) + steps(6, 7, 2), 7) == "1-3 of 1, 6-7 of 2");
  BOOST_TEST(taken(steps(1, 3, 1), 7) == "1-3 of 1");
  BOOST_TEST(taken("", 7) == "");
}

// A resumed run may go on in a shoal that is younger than its first one.
BOOST_AUTO_TEST_CASE(a_later_job_is_newer_whatever_its_epochs) {
  const std::string first = steps(1, 6, 12);
  BOOST_TEST(taken(first + resumed() + steps(5, 8, 2), 8)
             == "1-4 of 12, 5-8 of 2");
  BOOST_TEST(taken(first + resumed() + steps(5, 5, 2), 5)
             == "1-4 of 12, 5 of 2");
  // Of the later job too, an older branch may be added last.
  BOOST_TEST(taken(first + resumed() + steps(5, 8, 3) + steps(5, 7, 2), 8)
             == "1-4 of 12, 5-8 of 3");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::apps
