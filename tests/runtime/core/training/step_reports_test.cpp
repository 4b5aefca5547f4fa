// tests/runtime/core/training/step_reports_test.cpp -- the order of reports, by
// themselves.
#include "runtime/core/training/job/state/step_reports.hpp"
#include "tests/runtime/core/training/job_pieces.hpp"

namespace shoal::test {
BOOST_AUTO_TEST_SUITE(step_reports_alone)

namespace {

const island_place place = make_place(1, 2); // peers 1 and 2; 1 reports

step_record committed(std::uint64_t step, epoch made = 2) {
  step_record r;
  r.version = {step, made};
  r.replicas = 1;
  return r;
}

struct reporter {
  explicit reporter(std::uint64_t last, std::uint8_t self = 2)
    : d(duty_under(place, {7, 0}, peer(self))), reports(committed(last), last) {
  }

  job_actions publish(const step_record& r, nanoseconds now = 0) {
    job_actions out;
    reports.publish(d, r, {}, now, out);
    return out;
  }
  job_actions resume(const resume_decision& to, std::uint64_t interval = 0) {
    job_actions out;
    reports.resume(d, to, interval, out);
    return out;
  }

  duty d;
  step_reports reports;
};

std::vector<std::uint64_t> reported(const job_actions& out) {
  std::vector<std::uint64_t> steps;
  for (const act::step_known& a : all<act::step_known>(out))
    steps.push_back(a.record.version.step);
  return steps;
}

using steps = std::vector<std::uint64_t>;

} // namespace

BOOST_AUTO_TEST_CASE(a_step_is_reported_once) {
  reporter r(4);
  BOOST_TEST(reported(r.publish(committed(5))) == steps{5});
  BOOST_TEST(r.publish(committed(5)).empty());
  BOOST_TEST(r.publish(committed(4)).empty());
  BOOST_TEST((r.reports.last().version == state_version{5, 2}));
}

BOOST_AUTO_TEST_CASE(only_the_reporter_broadcasts) {
  for (const std::uint8_t self : {1, 2}) {
    reporter r(4, self);
    const auto out = all<act::committed>(r.publish(committed(5)));
    BOOST_REQUIRE(out.size() == 1u);
    BOOST_TEST(out[0].publish == (self == 1));
  }
}

BOOST_AUTO_TEST_CASE(a_step_after_a_gap_counts_at_once_and_is_reported_later) {
  reporter r(4);
  const auto out = r.publish(committed(7));
  BOOST_TEST(reported(out).empty());
  BOOST_TEST(all<act::committed>(out).size() == 1u);
  BOOST_TEST((r.reports.last().version == state_version{7, 2}));
  BOOST_TEST(reported(r.publish(committed(5))) == steps{5});
  BOOST_TEST((reported(r.publish(committed(6))) == steps{6, 7}));
}

BOOST_AUTO_TEST_CASE(missing_steps_are_asked_for_again_after_a_pause) {
  reporter r(4);
  (void)r.publish(committed(7), 100);
  job_actions out;
  r.reports.repeat(r.d, 100 + job_repeat_after - 1, out);
  BOOST_TEST(out.empty());
  r.reports.repeat(r.d, 100 + job_repeat_after, out);
  BOOST_REQUIRE(all<act::send>(out).size() == 1u);
  const auto wanted = std::get<records_wanted>(all<act::send>(out)[0].message);
  BOOST_TEST((wanted.after == state_version{4, 2}));
}

BOOST_AUTO_TEST_CASE(at_the_end_all_is_reported) {
  reporter r(4);
  (void)r.publish(committed(7));
  (void)r.publish(committed(9));
  job_actions out;
  r.reports.report_all(out);
  BOOST_TEST((reported(out) == steps{7, 9}));
  out.clear();
  r.reports.report_all(out);
  BOOST_TEST(out.empty());
}

BOOST_AUTO_TEST_CASE(a_loss_takes_the_reports_back_once) {
  reporter r(4);
  for (std::uint64_t step = 5; step <= 8; ++step)
    (void)r.publish(committed(step));
  r.d = duty_under(make_place(1, 2, 3), {7, 0}, peer(2));
  resume_decision to;
  to.version = {6, 2};
  to.last = to.top = 8;
  to.lost_unit = 3;
  auto out = r.resume(to, 10);
  const auto lost = all<act::lost_state>(out);
  BOOST_REQUIRE(lost.size() == 1u);
  BOOST_TEST(lost[0].unit == 3u);
  BOOST_TEST(lost[0].last == 8u);
  BOOST_TEST(lost[0].kept == 6u);
  BOOST_TEST(r.reports.records().size() == 2u); // 5 and 6
  BOOST_TEST(r.reports.top() == 8u);            // not given up for good
  to.last = 6;
  BOOST_TEST(r.resume(to, 10).empty());
  BOOST_TEST(r.publish(committed(7)).empty()); // old news: it was given up
  BOOST_TEST(reported(r.publish(committed(7, 3))) == steps{7});
}

BOOST_AUTO_TEST_CASE(a_loss_of_more_than_an_interval_is_given_up_for_good) {
  reporter r(8);
  resume_decision to;
  to.version = {2, 2};
  to.last = to.top = 8;
  (void)r.resume(to, 5);
  BOOST_TEST(r.reports.top() == 2u);
}

BOOST_AUTO_TEST_CASE(the_reporter_sends_again_what_a_sealer_lacks) {
  reporter r(0, 1);
  for (std::uint64_t step = 1; step <= 80; ++step)
    (void)r.publish(committed(step));
  std::map<peer_id, seal> seals;
  seals[peer(1)].last = committed(80);
  seals[peer(2)].last = committed(80);
  job_actions out;
  r.reports.tell_again(r.d, seals, {peer(1), peer(2)}, out);
  BOOST_TEST(out.size() == step_reports::records_told_min);
  seals[peer(2)].last = committed(10);
  out.clear();
  r.reports.tell_again(r.d, seals, {peer(1), peer(2)}, out);
  BOOST_TEST(out.size() == 70u);
  out.clear();
  reporter other(0, 2);
  (void)other.publish(committed(1));
  other.reports.tell_again(other.d, seals, {peer(1), peer(2)}, out);
  BOOST_TEST(out.empty());
}

/// A machine that came back lacked them for ever.
BOOST_AUTO_TEST_CASE(held_out_losses_are_sent_again_with_their_steps) {
  reporter r(0, 1);
  const auto evaluated = [&r](std::uint64_t step, epoch made = 2) {
    return eval_result{r.d.header, {step, made}, 0.5, 9};
  };
  for (std::uint64_t step = 1; step <= 9; ++step) {
    (void)r.publish(committed(step));
    if (step % 4 == 0)
      BOOST_TEST(r.reports.keep(evaluated(step)));
  }
  BOOST_TEST(!r.reports.keep(evaluated(8)));
  const auto told = [](const job_actions& out) {
    std::vector<std::pair<peer_id, std::uint64_t>> of;
    for (const act::send& a : all<act::send>(out))
      if (const auto* const e = std::get_if<eval_result>(&a.message))
        of.emplace_back(a.to, e->version.step);
    return of;
  };
  using losses = std::vector<std::pair<peer_id, std::uint64_t>>;
  job_actions out;
  r.reports.answer(r.d, peer(2), {r.d.header, {4, 2}}, out);
  BOOST_TEST(out.size() == 6u);
  BOOST_TEST((told(out) == losses{{peer(2), 8}}));
  std::map<peer_id, seal> seals;
  seals[peer(1)].last = committed(9);
  seals[peer(2)].last = committed(3);
  out.clear();
  r.reports.tell_again(r.d, seals, {peer(1), peer(2), peer(3)}, out);
  BOOST_TEST(
    (told(out)
     == losses{{peer(2), 4}, {peer(3), 4}, {peer(2), 8}, {peer(3), 8}}));
  // Those of steps that are given up are not.
  resume_decision to;
  to.version = {6, 2};
  to.last = to.top = 9;
  (void)r.resume(to, 10);
  out.clear();
  r.reports.answer(r.d, peer(2), {r.d.header, {1, 2}}, out);
  BOOST_TEST((told(out) == losses{{peer(2), 4}}));
}

BOOST_AUTO_TEST_CASE(the_records_kept_are_bounded) {
  reporter r(0);
  for (std::uint64_t step = 1; step <= step_reports::records_kept_max + 5;
       ++step)
    (void)r.publish(committed(step));
  BOOST_TEST(r.reports.records().size() == step_reports::records_kept_max);
  BOOST_TEST(r.reports.records().front().version.step == 6u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
