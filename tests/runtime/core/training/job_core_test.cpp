// tests/runtime/core/training/job_core_test.cpp -- the protocol's pieces one by
// one; whole jobs under faults are in tests/sim/job.
#include "tests/runtime/core/training/job_pieces.hpp"
#include "tests/support/held_parts.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>

BOOST_AUTO_TEST_SUITE(job_protocol)

using namespace shoal::test;

BOOST_AUTO_TEST_CASE(norm_and_loss_are_equal_to_the_bit_for_every_split) {
  constexpr std::uint32_t blocks = 6;
  std::vector<double> sums(blocks + 2);
  for (std::uint32_t u = 0; u < sums.size(); ++u)
    sums[u] = std::ldexp(1.0 + 0.1 * u, 3 * static_cast<int>(u) - 20);
  auto run = [&](std::vector<std::uint32_t> first_units) {
    std::vector<vote> votes(first_units.size());
    for (std::uint32_t u = 0; u < sums.size(); ++u) {
      std::size_t s = first_units.size() - 1;
      while (first_units[s] > u)
        --s;
      votes[s].units.push_back({u, sums[u]});
    }
    votes.back().losses = {0.1, 0.2, 0.7, 1e-9};
    std::vector<const vote*> order;
    for (auto& v : votes)
      order.insert(order.begin(), &v); // nor does the order of votes matter
    return *tally(order, blocks, 4);
  };
  step_record one = run({0});
  for (auto& split : std::vector<std::vector<std::uint32_t>>{
         {0, 3}, {0, 1, 2, 3}, {0, 5}, {0, 2, 7}}) {
    BOOST_TEST(run(split).grad_norm == one.grad_norm);
    BOOST_TEST(run(split).loss == one.loss);
  }
}

BOOST_AUTO_TEST_CASE(a_unit_without_a_vote_has_no_norm) {
  vote v;
  v.units = {{0, 1.0}, {2, 1.0}};
  v.losses = {1, 2, 3, 4};
  BOOST_TEST(!tally({&v}, 1, 4).has_value());
  v.units.push_back({1, 2.0});
  BOOST_TEST(tally({&v}, 1, 4)->grad_norm == 2.0);
  v.losses.pop_back();
  BOOST_TEST(!tally({&v}, 1, 4).has_value());
}

BOOST_AUTO_TEST_CASE(the_bubble_is_what_the_votes_say) {
  std::vector<vote> votes(3);
  std::vector<const vote*> all{&votes[0], &votes[1], &votes[2]};
  BOOST_TEST(bubble_permille(all) == 0u); // no peer has measured
  votes[0].busy = 900;
  votes[0].elapsed = 1000;
  votes[1].busy = 500;
  votes[1].elapsed = 600; // ended earlier, so it was idle as long as the first
  BOOST_TEST(bubble_permille(all) == 300u); // the third has no stage
  votes[2].busy = 5000;                     // no more than all of it
  votes[2].elapsed = 1000;
  BOOST_TEST(bubble_permille(all) == 200u);
}

BOOST_AUTO_TEST_CASE(a_lone_peer_runs_to_the_end_and_forgets_on_leaving) {
  island_place a = make_place(1, 1);
  job_core core = started(a, 1);
  for (std::uint64_t s = 1; s <= 3; ++s) {
    auto out = core.step(make_prepared(a, 1, 1, s), 0);
    BOOST_REQUIRE(all<act::apply>(out).size() == 1u);
    auto said = all<act::committed>(out);
    BOOST_REQUIRE(said.size() == 1u);
    BOOST_TEST(said[0].record.version.step == s);
    BOOST_TEST(said[0].publish);
    out = core.step(ev::applied{s}, 0);
    BOOST_TEST(all<act::run_step>(out).size() == (s < 3 ? 1u : 0u));
    BOOST_TEST(all<act::finished>(out).size() == (s < 3 ? 0u : 1u));
  }
  auto out = core.step(ev::view_changed{3, std::nullopt, {}}, 0);
  BOOST_TEST(all<act::halt>(out).size() == 1u);
  out = core.step(ev::halted{0}, 0);
  BOOST_REQUIRE(all<act::release>(out).size() == 1u);
  BOOST_TEST(all<act::release>(out)[0].units.size() == 3u);
  BOOST_TEST(all<act::ended>(out).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_drain_stops_after_the_step_in_progress) {
  island_place a = make_place(1, 1);
  job_core core = started(a, 1);
  (void)core.step(ev::drain{}, 0);
  (void)core.step(make_prepared(a, 1, 1, 1), 0);
  auto out = core.step(ev::applied{1}, 0);
  BOOST_REQUIRE(all<act::finished>(out).size() == 1u);
  BOOST_TEST(all<act::finished>(out)[0].step == 1u);
  BOOST_TEST((all<act::finished>(out)[0].reason == stop_reason::drained));
}

BOOST_AUTO_TEST_CASE(a_drain_that_is_wanted_no_longer_stops_nothing) {
  island_place a = make_place(1, 1);
  job_core core = started(a, 1);
  (void)core.step(ev::drain{}, 0);
  (void)core.step(ev::drain{false}, 0);
  (void)core.step(make_prepared(a, 1, 1, 1), 0);
  auto out = core.step(ev::applied{1}, 0);
  BOOST_TEST(all<act::finished>(out).empty());
  BOOST_TEST(all<act::run_step>(out).size() == 1u);
}

BOOST_AUTO_TEST_CASE(no_step_runs_before_the_data_is_here) {
  island_place a = make_place(1, 1);
  job_core core(make_config(1, 1));
  (void)core.step(show(a), 0);
  (void)core.step(ev::halted{digest(a)}, 0);
  job_actions out;
  for (std::uint32_t u = 0; u < 3; ++u)
    out = core.step(ev::loaded{digest(a), u}, 0);
  BOOST_TEST(all<act::run_step>(out).empty());
  BOOST_TEST(all<act::waiting>(out).size() == 1u);
  out = core.step(ev::blobs_held{}, 0);
  BOOST_TEST(all<act::run_step>(out).size() == 1u);
}

BOOST_AUTO_TEST_CASE(votes_of_strangers_and_other_assignments_do_nothing) {
  island_place a = make_place(2, 1);
  job_core core(make_config(1, 1));
  (void)core.step(ev::blobs_held{}, 0);
  (void)core.step(show(a), 0);
  (void)core.step(ev::halted{digest(a)}, 0);
  (void)core.step(ev::received{peer(2), make_seal(a, {}, {})}, 0);
  for (std::uint32_t u = 0; u < 3; ++u)
    (void)core.step(ev::loaded{digest(a), u}, 0);
  auto out = core.step(make_prepared(a, 1, 1, 1), 0);
  BOOST_REQUIRE(all<act::send>(out).size() == 1u);
  vote other = std::get<vote>(all<act::send>(out)[0].message);
  vote wrong = other;
  ++wrong.header.digest;
  BOOST_TEST(core.step(ev::received{peer(2), wrong}, 0).empty());
  BOOST_TEST(core.step(ev::received{peer(3), other}, 0).empty());
  wrong = other;
  wrong.step = 9;
  BOOST_TEST(core.step(ev::received{peer(2), wrong}, 0).empty());
  out = core.step(ev::received{peer(2), other}, 0);
  BOOST_TEST(all<act::apply>(out).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_seal_that_comes_before_its_view_is_kept_for_it) {
  island_place a = make_place(2, 1);
  job_core core(make_config(1, 1));
  BOOST_TEST(core.step(ev::received{peer(2), make_seal(a, {}, {})}, 0).empty());
  (void)core.step(show(a), 0);
  auto out = core.step(ev::halted{digest(a)}, 0);
  BOOST_TEST(all<act::adopt>(out).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_lost_seal_is_asked_for_on_a_tick) {
  island_place a = make_place(2, 1);
  job_core core(make_config(1, 1));
  (void)core.step(show(a), 0);
  auto own = all<act::send>(core.step(ev::halted{digest(a)}, 0));
  BOOST_REQUIRE(own.size() == 1u);
  BOOST_TEST(core.step(ev::tick{}, job_core::repeat_after - 1).empty());
  auto again = all<act::send>(core.step(ev::tick{}, job_core::repeat_after));
  BOOST_REQUIRE(again.size() == 1u);
  BOOST_TEST(std::get<seal>(again[0].message).again);
  seal theirs = make_seal(a, {}, {});
  theirs.again = true;
  auto answer = all<act::send>(core.step(ev::received{peer(2), theirs}, 0));
  BOOST_REQUIRE(answer.size() == 1u);
  BOOST_TEST((answer[0].message == own[0].message));
}

/// The reporter may have been away: a peer that knows more tells the others.
BOOST_AUTO_TEST_CASE(steps_that_the_reporter_missed_come_from_other_peers) {
  for (const bool it_missed_them : {true, false}) {
    const island_place a = make_place(1, 1);
    job_core core = started(a, 1);
    auto out = core.step(make_prepared(a, 1, 1, 1), 0);
    const auto first = all<act::committed>(out);
    BOOST_REQUIRE(first.size() == 1u);
    (void)core.step(ev::applied{1}, 0);
    island_place b = make_place(2, 1, 5);
    b.reporter = id(2);
    (void)core.step(show(b), 0);
    (void)core.step(ev::halted{digest(b)}, 0);
    seal other = make_seal(b, {}, {});
    if (!it_missed_them)
      other.last = first[0].record;
    out = core.step(ev::received{peer(2), other}, 0);
    const auto told = all<act::committed>(out);
    BOOST_REQUIRE(told.size() == (it_missed_them ? 1u : 0u));
    if (it_missed_them) {
      BOOST_TEST((told[0].record == first[0].record));
      BOOST_TEST(told[0].publish);
      BOOST_TEST(all<act::step_known>(out).empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(fetches_spread_over_the_holders_of_the_state) {
  island_place a = make_place(1, 4, 9); // peers 1 to 4, one block each
  std::map<peer_id, seal> seals;
  state_version at{5, 2};
  seals[peer(1)] = make_seal(a, {}, at);
  seals[peer(2)] = make_seal(a, {0, 1, 2, 3, 4, 5}, at);
  seals[peer(3)] = make_seal(a, {0, 1, 2, 3, 4, 5}, at);
  seals[peer(4)] = make_seal(a, {}, at);
  auto d = decide_resume(a, 4, 0, 0, seals);
  BOOST_TEST((d.version == at));
  std::map<peer_id, int> served;
  for (auto& t : d.transfers)
    ++served[t.from];
  BOOST_TEST(d.transfers.size() == 4u); // 0 and 1 to peer 1, 4 and 5 to 4
  BOOST_TEST(served[peer(2)] == 2);
  BOOST_TEST(served[peer(3)] == 2);
}

BOOST_AUTO_TEST_CASE(a_step_that_all_prepared_is_rolled_forward) {
  island_place before = make_place(1, 2, 2);
  island_place a = make_place(1, 2, 9);
  std::map<peer_id, seal> seals;
  for (std::uint8_t p = 1; p <= 2; ++p) {
    seal s = make_seal(a, held_by(before, peer(p)).list(), {4, 2});
    for (auto& u : s.units)
      u.prepared = true;
    s.prepared = {5, 2};
    auto e = make_prepared(before, 2, p, 5);
    s.prepared_vote.header = header_of(before);
    s.prepared_vote.step = 5;
    s.prepared_vote.units = e.units;
    s.prepared_vote.losses = e.losses;
    seals[peer(p)] = s;
  }
  auto d = decide_resume(a, 2, 0, 0, seals);
  BOOST_TEST((d.version == state_version{5, 2}));
  BOOST_TEST(d.known);
  BOOST_TEST(d.record.loss == (1.1 + 2.2 + 3.3 + 4.5) / 4);
  BOOST_TEST(d.transfers.empty());
  // One of them did not: back to the step that both have.
  seals[peer(2)].prepared = {};
  for (auto& u : seals[peer(2)].units)
    u.prepared = false;
  d = decide_resume(a, 2, 0, 0, seals);
  BOOST_TEST((d.version == state_version{4, 2}));
}

BOOST_AUTO_TEST_CASE(the_same_step_of_two_assignments_is_not_mixed) {
  island_place a = make_place(1, 2, 9);
  std::map<peer_id, seal> seals;
  seals[peer(1)] = make_seal(a, {0, 1}, {4, 2});
  seals[peer(2)] = make_seal(a, {2, 3}, {4, 3});
  auto d = decide_resume(a, 2, 0, 0, seals);
  BOOST_TEST((d.from == resume_decision::source::origin));
  BOOST_TEST(d.version.step == 0u);
  BOOST_TEST(d.last == 4u);
}

BOOST_AUTO_TEST_CASE(a_lost_unit_leads_to_the_newest_checkpoint_held) {
  island_place a = make_place(1, 2, 9);
  std::map<peer_id, seal> seals;
  seals[peer(1)] = make_seal(a, {0, 1}, {40, 2});
  seals[peer(2)] = make_seal(a, {}, {});
  seals[peer(1)].stored = whole({{20, {{1}}}});
  seals[peer(2)].stored = whole({{30, {{2}}}});
  auto d = decide_resume(a, 2, 0, 0, seals);
  BOOST_TEST((d.from == resume_decision::source::checkpoint));
  BOOST_TEST((d.version == state_version{30, 9}));
  BOOST_TEST(d.lost_unit == 2u);
  BOOST_REQUIRE(d.checkpoint_holders.size() == 1u);
  BOOST_TEST((d.checkpoint_holders[0] == peer(2)));
}

// A loss or a norm that is not finite: the vote says so to all alike.

namespace {
/// Prepares step `n` with such a first loss; what follows, up to `applied`.
job_actions
step_with(job_core& core, const island_place& a, std::uint64_t n, double loss) {
  ev::prepared e = make_prepared(a, 1, 1, n);
  e.losses = {loss, 2.2, 3.3, 4.5};
  job_actions out = core.step(e, 0);
  auto then = core.step(ev::applied{n}, 0);
  out.insert(out.end(), then.begin(), then.end());
  return out;
}
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
} // namespace

BOOST_AUTO_TEST_CASE(a_step_that_is_not_finite_counts_but_changes_nothing) {
  const island_place a = make_place(1, 1);
  job_core core = started(a, 1, [](job_config& c) { c.total_steps = 9; });
  auto out = step_with(core, a, 1, nan);
  BOOST_TEST(std::isnan(all<act::apply>(out)[0].grad_norm));
  BOOST_TEST(all<act::committed>(out)[0].record.bad == 1u);
  BOOST_TEST(all<act::run_step>(out)[0].step == 2u); // the next samples
  BOOST_TEST(core.held().at(0).step == 1u);
  out = step_with(core, a, 2, 1.1);
  BOOST_TEST(std::isfinite(all<act::apply>(out)[0].grad_norm));
  BOOST_TEST(all<act::committed>(out)[0].record.bad == 0u);
}

BOOST_AUTO_TEST_CASE(a_vote_says_how_many_such_steps_came_before) {
  const island_place a = make_place(1, 1);
  job_core core = started(a, 1, [](job_config& c) { c.total_steps = 9; });
  const auto prepare = [&](std::uint64_t n) {
    static_cast<void>(step_with(core, a, n, nan));
  };
  prepare(1);
  prepare(2);
  static_cast<void>(core.step(show(make_place(1, 1, 3)), 0));
  static_cast<void>(core.step(make_prepared(a, 1, 1, 3), 0));
  static_cast<void>(core.step(ev::halted{digest(make_place(1, 1, 3))}, 0));
  const seal& own = core.seals().at(peer(1));
  BOOST_TEST((own.prepared == state_version{3, 2}));
  BOOST_TEST(own.prepared_vote.bad_before == 2u);
}

BOOST_AUTO_TEST_CASE(too_many_such_steps_in_a_row_end_the_job) {
  const island_place a = make_place(1, 1);
  job_core core = started(a, 1, [](job_config& c) {
    c.total_steps = 9;
    c.max_bad_steps = 2;
    c.checkpoint_every = 1;
    c.checkpoint_at_end = true;
  });
  auto out = step_with(core, a, 1, nan);
  BOOST_TEST(all<act::run_checkpoint>(out).empty()); // it would be the same
  out = step_with(core, a, 2, nan);
  BOOST_TEST(all<act::run_checkpoint>(out).empty());
  BOOST_TEST(all<act::run_step>(out).empty());
  const auto ended = all<act::finished>(out);
  BOOST_TEST_REQUIRE(ended.size() == 1u);
  BOOST_TEST((ended[0].reason == stop_reason::diverged));
  BOOST_TEST(ended[0].step == 2u);
}

BOOST_AUTO_TEST_CASE(bad_steps_in_a_row_are_counted_through_a_resume) {
  const island_place a = make_place(1, 1, 9);
  seal s = make_seal(a, {0, 1, 2}, {6, 2});
  s.last.bad = 3;
  s.last.loss = nan;
  auto d = decide_resume(a, 1, 0, 0, {{peer(1), s}});
  BOOST_TEST(d.record.bad == 3u);
  for (held_unit& u : s.units)
    u.prepared = true;
  s.prepared = {7, 2};
  s.prepared_vote.step = 7;
  s.prepared_vote.losses = {nan, 1, 1, 1};
  for (std::uint32_t u = 0; u < 3; ++u)
    s.prepared_vote.units.push_back({u, 0.5});
  s.prepared_vote.bad_before = 3;
  d = decide_resume(a, 1, 0, 0, {{peer(1), s}});
  BOOST_TEST(d.version.step == 7u);
  BOOST_TEST(d.record.bad == 4u);
  s.last.replicas = 0; // it went back to that step, and has no record of it
  d = decide_resume(a, 1, 0, 0, {{peer(1), s}});
  BOOST_TEST(d.record.bad == 4u);
}

/// Peer 2 was stopped, and knows bad steps that the run went back behind.
BOOST_AUTO_TEST_CASE(bad_steps_of_a_history_that_was_given_up_do_not_count) {
  const island_place a = make_place(1, 1, 9);
  seal s = make_seal(a, {0, 1, 2}, {6, 2});
  for (held_unit& u : s.units)
    u.prepared = true;
  s.prepared = {7, 2};
  s.prepared_vote.losses = {nan, 1, 1, 1};
  for (std::uint32_t u = 0; u < 3; ++u)
    s.prepared_vote.units.push_back({u, 0.5});
  seal stopped = make_seal(a, {}, {6, 1});
  stopped.last.bad = 3;
  const auto d = decide_resume(a, 1, 0, 0, {{peer(1), s}, {peer(2), stopped}});
  BOOST_TEST((d.version == state_version{7, 2}));
  BOOST_TEST(d.record.bad == 1u);
}

BOOST_AUTO_TEST_CASE(units_whose_load_was_broken_off_are_released) {
  const island_place a = make_place(1, 1);
  job_core core(make_config(1, 1));
  (void)core.step(ev::blobs_held{}, 0);
  (void)core.step(show(a), 0);
  auto out = core.step(ev::halted{digest(a)}, 0);
  BOOST_REQUIRE(all<act::initialise_unit>(out).size() == 3u);
  (void)core.step(ev::loaded{digest(a), 0}, 0);
  island_place others = make_place(1, 1, 3);
  others.replicas[0].stages[0].shards = {{id(2)}};
  others.sealers = {id(2)};
  (void)core.step(show(others), 0);
  out = core.step(ev::halted{digest(others)}, 0);
  BOOST_REQUIRE(all<act::release>(out).size() == 1u);
  auto units = all<act::release>(out)[0].units;
  std::ranges::sort(units);
  BOOST_TEST((units == std::vector<std::uint32_t>{0, 1, 2}));
}

BOOST_AUTO_TEST_SUITE_END()
