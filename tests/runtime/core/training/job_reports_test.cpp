// tests/runtime/core/training/job_reports_test.cpp -- committed steps are reported in
// order, each once, also where some were missed.
#include "tests/runtime/core/training/job_pieces.hpp"

namespace shoal::test {
BOOST_AUTO_TEST_SUITE(job_reports)

namespace {

const island_place at_work = make_place(1, 2); // peers 1 and 2; 1 reports

progress of_step(std::uint64_t step, epoch made = 2) {
  progress p;
  p.header = header_of(at_work);
  p.record.version = {step, made};
  p.record.loss = double(step);
  p.record.replicas = 1;
  p.record.stages = 2;
  return p;
}

/// Peer 3, no sealer, that has reported step 4, in an earlier life or not.
job_core back_from_outside(std::uint64_t reported = 4) {
  job_config c = make_config(3, 2);
  if (reported > 0)
    c.last = of_step(reported).record;
  job_core core(c);
  ev::view_changed e = show(at_work);
  e.members.push_back(peer(3));
  (void)core.step(e, 0);
  (void)core.step(ev::halted{digest(at_work)}, 0);
  return core;
}

job_actions hear(job_core& core, const progress& p, nanoseconds now = 0) {
  return core.step(ev::received{peer(1), p}, now);
}

std::vector<std::uint64_t> reported(const job_actions& out) {
  std::vector<std::uint64_t> steps;
  for (const act::step_known& a : all<act::step_known>(out))
    steps.push_back(a.record.version.step);
  return steps;
}

using steps = std::vector<std::uint64_t>;

} // namespace

BOOST_AUTO_TEST_CASE(a_step_waits_for_those_that_were_missed) {
  job_core core = back_from_outside();
  auto out = hear(core, of_step(7));
  BOOST_TEST(reported(out).empty());
  const auto asked = all<act::send>(out);
  BOOST_REQUIRE(asked.size() == 1u);
  BOOST_TEST((asked[0].to == peer(1)));
  const auto wanted = std::get<records_wanted>(asked[0].message);
  BOOST_TEST((wanted.after == state_version{4, 2}));
  out = hear(core, of_step(8));
  BOOST_TEST(all<act::send>(out).empty()); // asked once
  BOOST_TEST(reported(out).empty());
  BOOST_TEST(reported(hear(core, of_step(5))) == steps{5});
  BOOST_TEST((reported(hear(core, of_step(6))) == steps{6, 7, 8}));
  BOOST_TEST(reported(hear(core, of_step(7))).empty()); // once
  BOOST_TEST(reported(hear(core, of_step(9))) == steps{9});
}

BOOST_AUTO_TEST_CASE(a_step_that_no_peer_reports_is_left_out) {
  job_core core = back_from_outside();
  (void)hear(core, of_step(7));
  nanoseconds now = 0;
  std::vector<peer_id> asked{peer(1)};
  steps told;
  for (int i = 0; told.empty() && i < 100; ++i) {
    now += job_core::repeat_after;
    const auto out = core.step(ev::tick{}, now);
    for (const act::send& a : all<act::send>(out))
      if (std::holds_alternative<records_wanted>(a.message))
        asked.push_back(a.to);
    told = reported(out);
  }
  BOOST_TEST(told == steps{7});
  BOOST_TEST((asked == std::vector{peer(1), peer(2), peer(1), peer(2)}));
  BOOST_TEST(asked.size() == step_reports::records_tries_max);
  BOOST_TEST(reported(hear(core, of_step(5), now)).empty()); // too late
  BOOST_TEST(reported(hear(core, of_step(8), now)) == steps{8});
}

BOOST_AUTO_TEST_CASE(a_joiner_reports_from_its_first_step_on) {
  job_core core = back_from_outside(0);
  const auto out = hear(core, of_step(7));
  BOOST_TEST(reported(out) == steps{7});
  BOOST_TEST(all<act::send>(out).empty());
}

BOOST_AUTO_TEST_CASE(missed_steps_come_from_a_peer_that_knows_them) {
  job_core core = back_from_outside();
  for (std::uint64_t step = 5; step <= 8; ++step)
    (void)hear(core, of_step(step));
  const records_wanted wanted{of_step(0).header, {6, 2}};
  const auto out = core.step(ev::received{peer(2), wanted}, 0);
  steps told;
  for (const act::send& a : all<act::send>(out)) {
    BOOST_TEST((a.to == peer(2)));
    told.push_back(std::get<progress>(a.message).record.version.step);
  }
  BOOST_TEST((told == steps{7, 8}));
}

BOOST_AUTO_TEST_CASE(steps_that_were_given_up_are_not_reported) {
  job_core core = back_from_outside();
  for (std::uint64_t step = 5; step <= 8; ++step)
    (void)hear(core, of_step(step));
  const auto out = hear(core, of_step(7, 3));    // 7 and 8 were lost
  BOOST_TEST(all<act::lost_state>(out).empty()); // it held nothing
  BOOST_REQUIRE(all<act::went_back>(out).size() == 1u);
  BOOST_TEST(all<act::went_back>(out)[0].last == 8u);
  BOOST_TEST(all<act::went_back>(out)[0].kept == 6u);
  const records_wanted wanted{of_step(0).header, {4, 2}};
  std::vector<state_version> told;
  for (const act::send& a :
       all<act::send>(core.step(ev::received{peer(2), wanted}, 0)))
    told.push_back(std::get<progress>(a.message).record.version);
  BOOST_TEST((told == std::vector<state_version>{{5, 2}, {6, 2}, {7, 3}}));
}

// It was away as the others lost steps, and nothing is lost as it comes back.
BOOST_AUTO_TEST_CASE(a_late_peer_claims_no_loss_of_others) {
  const island_place next = make_place(1, 2, 9);
  job_config c = make_config(1, 2);
  c.total_steps = 400;
  c.last = of_step(139).record;
  job_core core(c);
  (void)core.step(show(next), 0);
  (void)core.step(ev::halted{digest(next)}, 0);
  const auto out = core.step(
    ev::received{peer(2), make_seal(next, {0, 1, 2, 3}, {120, 5})}, 0);
  BOOST_TEST(all<act::lost_state>(out).empty());
  BOOST_REQUIRE(all<act::went_back>(out).size() == 1u);
  BOOST_TEST(all<act::went_back>(out)[0].last == 139u);
  BOOST_TEST(all<act::went_back>(out)[0].kept == 119u);
  BOOST_TEST(reported(out) == steps{120});
}

// The run began anew while this peer was away, and its first step is rolled
// forward to as this peer hears that what it knew is lost.
BOOST_AUTO_TEST_CASE(a_step_that_follows_a_loss_at_once_is_reported) {
  const island_place next = make_place(1, 2, 9);
  job_config c = make_config(1, 2);
  c.total_steps = 40;
  c.last = of_step(24).record;
  job_core core(c);
  (void)core.step(show(next), 0);
  (void)core.step(ev::halted{digest(next)}, 0);
  seal theirs = make_seal(next, {0, 1, 2, 3}, {0, 5});
  theirs.last = {};
  theirs.prepared = {1, 5};
  theirs.prepared_vote.losses = {1, 2, 3, 4};
  for (held_unit& u : theirs.units) {
    u.prepared = true;
    theirs.prepared_vote.units.push_back({u.unit, 0.5});
  }
  const auto out = core.step(ev::received{peer(2), theirs}, 0);
  BOOST_REQUIRE(all<act::adopt>(out).size() == 1u);
  BOOST_TEST((all<act::adopt>(out)[0].from == state_version{1, 5}));
  BOOST_REQUIRE(all<act::lost_state>(out).size() == 1u);
  BOOST_TEST(all<act::lost_state>(out)[0].last == 24u);
  BOOST_TEST(all<act::lost_state>(out)[0].resume == 1u);
  BOOST_TEST(all<act::lost_state>(out)[0].kept == 0u); // told from there on
  BOOST_TEST(reported(out) == steps{1});
  BOOST_TEST(all<act::committed>(out).size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
