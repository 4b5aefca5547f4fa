// tests/runtime/core/job_core_test.cpp -- the protocol's pieces one by one;
// whole jobs under faults are in tests/sim/job.
#include "runtime/core/training/job_core.hpp"
#include "runtime/core/training/plan.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace shoal::core;
namespace act = shoal::core::job_action;
namespace ev = shoal::core::job_event;

namespace {

peer_id peer(std::uint8_t n) {
  peer_id p{};
  p[0] = n;
  return p;
}
member_id id(std::uint8_t n) {
  return {peer(n), 1};
}

/// Replicas of stages of one block each; peers from 1 in order.
assignment
make_place(std::uint32_t replicas, std::uint32_t stages, epoch since = 2) {
  assignment a;
  a.job = 7;
  a.since = since;
  std::uint8_t n = 0;
  for (std::uint32_t r = 0; r < replicas; ++r) {
    replica_place p;
    for (std::uint32_t s = 0; s < stages; ++s)
      p.stages.push_back({id(++n), s, s + 1});
    p.first_microbatch = r * 4 / replicas;
    p.last_microbatch = (r + 1) * 4 / replicas;
    a.replicas.push_back(p);
  }
  for (std::uint8_t i = 1; i <= n; ++i)
    a.sealers.push_back(id(i));
  a.keepers = {id(1)};
  a.data_source = a.checkpointer = a.evaluator = a.reporter = id(1);
  return a;
}

job_config make_config(std::uint8_t self, std::uint32_t blocks) {
  job_config c;
  c.job = 7;
  c.self = peer(self);
  c.blocks = blocks;
  c.microbatches = 4;
  c.total_steps = 3;
  c.checkpoint_at_end = false;
  return c;
}

ev::view_changed show(const assignment& a) {
  ev::view_changed e{a.since, a, {}};
  for (auto& m : a.sealers)
    e.members.push_back(m.peer);
  return e;
}

template <class Action>
std::vector<Action> all(const job_actions& actions) {
  std::vector<Action> out;
  for (auto& a : actions)
    if (auto* x = std::get_if<Action>(&a))
      out.push_back(*x);
  return out;
}

ev::prepared make_prepared(const assignment& a, std::uint32_t blocks,
                           std::uint8_t self, std::uint64_t step) {
  ev::prepared e{digest(a), step, {}, {}, {}};
  for (std::uint32_t u : units_of(a, peer(self))) {
    e.units.push_back({u, {0.1 * (u + 1), 0.3, 1e-7 * (u + 3)}});
    if (u == blocks + 1)
      e.losses = {1.1, 2.2, 3.3, 4.5};
  }
  return e;
}

/// A lone peer up to run_step(1).
job_core started(const assignment& a, std::uint32_t blocks) {
  job_core core(make_config(1, blocks));
  (void)core.step(ev::blobs_held{}, 0);
  (void)core.step(show(a), 0);
  auto out = core.step(ev::halted{digest(a)}, 0);
  BOOST_REQUIRE(all<act::initialise_unit>(out).size() == blocks + 2);
  for (std::uint32_t u = 0; u < blocks + 2; ++u)
    out = core.step(ev::loaded{digest(a), u}, 0);
  BOOST_REQUIRE(all<act::run_step>(out).size() == 1u);
  return core;
}

seal make_seal(const assignment& a, std::vector<std::uint32_t> units,
               state_version at) {
  seal s;
  s.on = {a.job, digest(a), a.since};
  for (std::uint32_t u : units)
    s.units.push_back({u, at, false});
  s.last.version = at;
  s.last.replicas = 1;
  return s;
}

} // namespace

BOOST_AUTO_TEST_SUITE(job_protocol)

BOOST_AUTO_TEST_CASE(norm_and_loss_are_equal_to_the_bit_for_every_split) {
  constexpr std::uint32_t blocks = 6;
  std::vector<std::vector<double>> sums(blocks + 2);
  for (std::uint32_t u = 0; u < sums.size(); ++u)
    for (int t = 0; t < 9; ++t)
      sums[u].push_back(
        std::ldexp(1.0 + 0.1 * t, static_cast<int>(u) - 20 + t));
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
  v.units = {{0, {1.0}}, {2, {1.0}}};
  v.losses = {1, 2, 3, 4};
  BOOST_TEST(!tally({&v}, 1, 4).has_value());
  v.units.push_back({1, {2.0}});
  BOOST_TEST(tally({&v}, 1, 4)->grad_norm == 2.0);
  v.losses.pop_back();
  BOOST_TEST(!tally({&v}, 1, 4).has_value());
}

BOOST_AUTO_TEST_CASE(the_bubble_is_what_the_votes_say) {
  std::vector<vote> votes(3);
  std::vector<const vote*> all{&votes[0], &votes[1], &votes[2]};
  BOOST_TEST(bubble_permille(all) == 0u); // nobody has measured
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
  assignment a = make_place(1, 1);
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
  assignment a = make_place(1, 1);
  job_core core = started(a, 1);
  (void)core.step(ev::drain{}, 0);
  (void)core.step(make_prepared(a, 1, 1, 1), 0);
  auto out = core.step(ev::applied{1}, 0);
  BOOST_REQUIRE(all<act::finished>(out).size() == 1u);
  BOOST_TEST(all<act::finished>(out)[0].step == 1u);
  BOOST_TEST((all<act::finished>(out)[0].reason == stop_reason::drained));
}

/// Peer 1 works, 2 and 3 keep; all steps and the last checkpoint are done.
job_core at_the_end(const assignment& a, const checkpoint_ref& last) {
  job_config c = make_config(1, 1);
  c.checkpoint_at_end = true;
  c.total_steps = 1;
  job_core core(c);
  (void)core.step(ev::blobs_held{}, 0);
  (void)core.step(show(a), 0);
  (void)core.step(ev::halted{digest(a)}, 0);
  const job_header on{a.job, digest(a), a.since};
  for (std::uint8_t n : {2, 3}) {
    (void)core.step(ev::received{peer(n), make_seal(a, {}, {})}, 0);
    (void)core.step(ev::received{peer(n), have_blobs{on}}, 0);
  }
  for (std::uint32_t u = 0; u < 3; ++u)
    (void)core.step(ev::loaded{digest(a), u}, 0);
  (void)core.step(make_prepared(a, 1, 1, 1), 0);
  auto out = core.step(ev::applied{1}, 0);
  BOOST_REQUIRE(all<act::run_checkpoint>(out).size() == 1u);
  const bool good = last.manifest != blob_digest{};
  out = core.step(
    ev::checkpointed{digest(a), 1, good, last.manifest, 10, {}, false}, 0);
  BOOST_TEST(all<act::finished>(out).size() == (good ? 0u : 1u));
  return core;
}

BOOST_AUTO_TEST_CASE(the_end_waits_for_a_second_store) {
  assignment a = make_place(1, 1);
  a.keepers = a.sealers = {id(1), id(2), id(3)};
  const job_header on{a.job, digest(a), a.since};
  const checkpoint_ref last{1, {{9}}};
  auto ends = [](job_core& core, const job_input& e, nanoseconds at) {
    return all<act::finished>(core.step(e, at)).size() == 1;
  };
  job_core core = at_the_end(a, last);
  ev::received kept{peer(4), have_checkpoint{on, last}};
  BOOST_TEST(!ends(core, kept, 0)); // no keeper
  kept.from = peer(1);
  BOOST_TEST(!ends(core, kept, 0)); // its writer
  BOOST_TEST(!ends(core, ev::received{peer(3), have_checkpoint{on, {}}}, 0));
  kept.from = peer(2);
  BOOST_TEST(ends(core, kept, 0));
  BOOST_TEST(!ends(core, kept, 0)); // once

  job_core alone = at_the_end(a, last);
  BOOST_TEST(!ends(alone, ev::tick{}, job_core::keep_wait_max - 1));
  const nanoseconds later = job_core::keep_wait_max + job_core::repeat_after;
  BOOST_TEST(ends(alone, ev::tick{}, later));

  (void)at_the_end(a, {}); // it could not be written: nothing to wait for
}

BOOST_AUTO_TEST_CASE(the_end_waits_while_the_last_checkpoint_is_tried_again) {
  assignment a = make_place(1, 1);
  a.keepers = a.sealers = {id(1)};
  job_config c = make_config(1, 1);
  c.checkpoint_at_end = true;
  c.total_steps = 1;
  job_core core(c);
  (void)core.step(ev::blobs_held{}, 0);
  (void)core.step(show(a), 0);
  (void)core.step(ev::halted{digest(a)}, 0);
  for (std::uint32_t u = 0; u < 3; ++u)
    (void)core.step(ev::loaded{digest(a), u}, 0);
  (void)core.step(make_prepared(a, 1, 1, 1), 0);
  auto out = core.step(ev::applied{1}, 0);
  BOOST_REQUIRE(all<act::run_checkpoint>(out).size() == 1u);
  BOOST_TEST(all<act::run_checkpoint>(out)[0].last);
  out = core.step(
    ev::checkpointed{digest(a), 1, false, {}, 0, "disk full", true}, 0);
  BOOST_TEST(all<act::finished>(out).empty());
  BOOST_REQUIRE(all<act::checkpoint_failed>(out).size() == 1u);
  BOOST_TEST(all<act::checkpoint_failed>(out)[0].why == "disk full");
  out = core.step(ev::tick{}, 100 * job_core::keep_wait_max);
  BOOST_TEST(all<act::finished>(out).empty());
  out = core.step(ev::checkpointed{digest(a), 1, true, {9}, 10, {}, false}, 0);
  BOOST_TEST(all<act::finished>(out).size() == 1u);
}

/// A lone peer that saves after each step; it has just been asked for step 1.
job_core saving(const assignment& a, std::uint64_t total_steps) {
  job_config c = make_config(1, 1);
  c.checkpoint_every = 1;
  c.checkpoint_at_end = true;
  c.total_steps = total_steps;
  job_core core(c);
  (void)core.step(ev::blobs_held{}, 0);
  (void)core.step(show(a), 0);
  (void)core.step(ev::halted{digest(a)}, 0);
  const job_header on{a.job, digest(a), a.since};
  for (const member_id& m : a.sealers)
    if (m.peer != peer(1)) {
      (void)core.step(ev::received{m.peer, make_seal(a, {}, {})}, 0);
      (void)core.step(ev::received{m.peer, have_blobs{on}}, 0);
    }
  for (std::uint32_t u = 0; u < 3; ++u)
    (void)core.step(ev::loaded{digest(a), u}, 0);
  (void)core.step(make_prepared(a, 1, 1, 1), 0);
  auto out = core.step(ev::applied{1}, 0);
  BOOST_REQUIRE(all<act::run_checkpoint>(out).size() == 1u);
  return core;
}

BOOST_AUTO_TEST_CASE(the_run_goes_on_while_a_checkpoint_is_written) {
  assignment a = make_place(1, 1);
  a.keepers = a.sealers = {id(1)};
  job_core core = saving(a, 3);
  auto out = core.step(ev::snapshot_taken{digest(a), 2}, 0);
  BOOST_TEST(out.empty()); // of another step
  out = core.step(ev::snapshot_taken{digest(a), 1}, 0);
  BOOST_REQUIRE(all<act::run_step>(out).size() == 1u);
  BOOST_TEST(all<act::run_step>(out)[0].step == 2u);
  (void)core.step(make_prepared(a, 1, 1, 2), 0);
  out = core.step(ev::applied{2}, 0);
  BOOST_REQUIRE(all<act::run_checkpoint>(out).size() == 1u);
  out = core.step(ev::snapshot_taken{digest(a), 2}, 0);
  BOOST_REQUIRE(all<act::run_step>(out).size() == 1u);
  BOOST_TEST(all<act::run_step>(out)[0].step == 3u);
  // The first one ends only now, in the middle of step 3.
  out = core.step(ev::checkpointed{digest(a), 1, true, {9}, 10, {}, false}, 0);
  BOOST_REQUIRE(all<act::checkpoint_known>(out).size() == 1u);
  BOOST_TEST(all<act::checkpoint_known>(out)[0].checkpoint.step == 1u);
  BOOST_TEST(all<act::run_step>(out).empty());
}

BOOST_AUTO_TEST_CASE(a_checkpoint_that_ends_late_hides_no_later_one) {
  assignment a = make_place(1, 1);
  a.keepers = a.sealers = {id(1), id(2)};
  const job_header on{a.job, digest(a), a.since};
  job_core core = saving(a, 2);
  (void)core.step(ev::snapshot_taken{digest(a), 1}, 0);
  (void)core.step(make_prepared(a, 1, 1, 2), 0);
  (void)core.step(ev::applied{2}, 0);
  (void)core.step(ev::snapshot_taken{digest(a), 2}, 0);
  (void)core.step(ev::checkpointed{digest(a), 2, true, {8}, 10, {}, false}, 0);
  auto out =
    core.step(ev::checkpointed{digest(a), 1, true, {9}, 10, {}, false}, 0);
  BOOST_TEST(out.empty());
  // What is said again at the end is the last one.
  out = core.step(ev::tick{}, job_core::repeat_after);
  bool said = false;
  for (const auto& s : all<act::send>(out))
    if (const auto* p = std::get_if<checkpoint_published>(&s.message)) {
      said = true;
      BOOST_TEST(p->checkpoint.step == 2u);
    }
  BOOST_TEST(said);

  // Nor at another peer, where messages may overtake each other.
  job_core keeper(make_config(2, 1));
  (void)keeper.step(show(a), 0);
  (void)keeper.step(ev::halted{digest(a)}, 0);
  const checkpoint_published second{on, {2, {8}}, 10, {}, false};
  (void)keeper.step(ev::received{peer(1), second}, 0);
  (void)keeper.step(
    ev::received{peer(1), checkpoint_published{on, {1, {9}}, 10, {}, false}},
    0);
  out = keeper.step(ev::received{peer(1), second}, 0);
  BOOST_TEST(out.empty()); // known, and being fetched
}

BOOST_AUTO_TEST_CASE(a_keeper_says_what_it_holds_and_again_if_asked_again) {
  assignment a = make_place(1, 1);
  a.keepers = a.sealers = {id(1), id(2)};
  const job_header on{a.job, digest(a), a.since};
  const checkpoint_ref made{1, {{9}}};
  job_core core(make_config(2, 1));
  (void)core.step(show(a), 0);
  (void)core.step(ev::halted{digest(a)}, 0);
  const ev::received told{peer(1),
                          checkpoint_published{on, made, 10, {}, false}};
  auto out = core.step(told, 0);
  BOOST_TEST(all<act::checkpoint_known>(out).size() == 1u);
  BOOST_TEST(all<act::keep_checkpoint>(out).size() == 1u);
  BOOST_TEST(core.step(told, 0).empty()); // it is on its way
  for (const job_input& e :
       {job_input{ev::checkpoint_held{made}}, job_input{told}}) {
    auto said = all<act::send>(core.step(e, 0));
    BOOST_REQUIRE(said.size() == 1u);
    BOOST_TEST((said[0].to == peer(1)));
    BOOST_TEST((std::get<have_checkpoint>(said[0].message).checkpoint == made));
  }
}

BOOST_AUTO_TEST_CASE(a_checkpoint_in_one_store_only_is_made_again) {
  assignment a = make_place(1, 1, 9);
  a.keepers = {id(1), id(2)};
  std::map<peer_id, seal> seals;
  seals[peer(1)] = make_seal(a, {0, 1, 2}, {5, 2});
  seals[peer(2)] = make_seal(a, {}, {});
  seals[peer(1)].checkpoint = {5, {{1}}};
  BOOST_TEST(!decide_resume(a, 1, 0, seals).checkpointed);
  seals[peer(2)].checkpoint = {5, {{1}}};
  BOOST_TEST(decide_resume(a, 1, 0, seals).checkpointed);
}

BOOST_AUTO_TEST_CASE(no_step_runs_before_the_data_is_here) {
  assignment a = make_place(1, 1);
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
  assignment a = make_place(2, 1);
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
  ++wrong.on.digest;
  BOOST_TEST(core.step(ev::received{peer(2), wrong}, 0).empty());
  BOOST_TEST(core.step(ev::received{peer(3), other}, 0).empty());
  wrong = other;
  wrong.step = 9;
  BOOST_TEST(core.step(ev::received{peer(2), wrong}, 0).empty());
  out = core.step(ev::received{peer(2), other}, 0);
  BOOST_TEST(all<act::apply>(out).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_seal_that_comes_before_its_view_is_kept_for_it) {
  assignment a = make_place(2, 1);
  job_core core(make_config(1, 1));
  BOOST_TEST(core.step(ev::received{peer(2), make_seal(a, {}, {})}, 0).empty());
  (void)core.step(show(a), 0);
  auto out = core.step(ev::halted{digest(a)}, 0);
  BOOST_TEST(all<act::adopt>(out).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_lost_seal_is_asked_for_on_a_tick) {
  assignment a = make_place(2, 1);
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

/// The reporter may have been away: who knows more than it tells the others.
BOOST_AUTO_TEST_CASE(steps_that_the_reporter_missed_are_told_by_who_has_them) {
  for (const bool it_missed_them : {true, false}) {
    const assignment a = make_place(1, 1);
    job_core core = started(a, 1);
    auto out = core.step(make_prepared(a, 1, 1, 1), 0);
    const auto first = all<act::committed>(out);
    BOOST_REQUIRE(first.size() == 1u);
    (void)core.step(ev::applied{1}, 0);
    assignment b = make_place(2, 1, 5);
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
      BOOST_TEST((told[0].again && told[0].publish));
    }
  }
}

BOOST_AUTO_TEST_CASE(fetches_spread_over_those_who_hold_the_state) {
  assignment a = make_place(1, 4, 9); // peers 1 to 4, one block each
  std::map<peer_id, seal> seals;
  state_version at{5, 2};
  seals[peer(1)] = make_seal(a, {}, at);
  seals[peer(2)] = make_seal(a, {0, 1, 2, 3, 4, 5}, at);
  seals[peer(3)] = make_seal(a, {0, 1, 2, 3, 4, 5}, at);
  seals[peer(4)] = make_seal(a, {}, at);
  auto d = decide_resume(a, 4, 0, seals);
  BOOST_TEST((d.version == at));
  std::map<peer_id, int> served;
  for (auto& t : d.transfers)
    ++served[t.from];
  BOOST_TEST(d.transfers.size() == 4u); // 0 and 1 to peer 1, 4 and 5 to 4
  BOOST_TEST(served[peer(2)] == 2);
  BOOST_TEST(served[peer(3)] == 2);
}

BOOST_AUTO_TEST_CASE(a_step_that_all_prepared_is_rolled_forward) {
  assignment before = make_place(1, 2, 2);
  assignment a = make_place(1, 2, 9);
  std::map<peer_id, seal> seals;
  for (std::uint8_t p = 1; p <= 2; ++p) {
    seal s = make_seal(a, units_of(before, peer(p)), {4, 2});
    for (auto& u : s.units)
      u.prepared = true;
    s.prepared = {5, 2};
    auto e = make_prepared(before, 2, p, 5);
    s.prepared_vote.on = {7, digest(before), 2};
    s.prepared_vote.step = 5;
    s.prepared_vote.units = e.units;
    s.prepared_vote.losses = e.losses;
    seals[peer(p)] = s;
  }
  auto d = decide_resume(a, 2, 0, seals);
  BOOST_TEST((d.version == state_version{5, 2}));
  BOOST_TEST(d.known);
  BOOST_TEST(d.record.loss == (1.1 + 2.2 + 3.3 + 4.5) / 4);
  BOOST_TEST(d.transfers.empty());
  // One of them did not: back to the step that both have.
  seals[peer(2)].prepared = {};
  for (auto& u : seals[peer(2)].units)
    u.prepared = false;
  d = decide_resume(a, 2, 0, seals);
  BOOST_TEST((d.version == state_version{4, 2}));
}

BOOST_AUTO_TEST_CASE(the_same_step_of_two_assignments_is_not_mixed) {
  assignment a = make_place(1, 2, 9);
  std::map<peer_id, seal> seals;
  seals[peer(1)] = make_seal(a, {0, 1}, {4, 2});
  seals[peer(2)] = make_seal(a, {2, 3}, {4, 3});
  auto d = decide_resume(a, 2, 0, seals);
  BOOST_TEST((d.from == resume_decision::source::origin));
  BOOST_TEST(d.version.step == 0u);
  BOOST_TEST(d.last == 4u);
}

BOOST_AUTO_TEST_CASE(a_lost_unit_leads_to_the_newest_checkpoint_held) {
  assignment a = make_place(1, 2, 9);
  std::map<peer_id, seal> seals;
  seals[peer(1)] = make_seal(a, {0, 1}, {40, 2});
  seals[peer(2)] = make_seal(a, {}, {});
  seals[peer(1)].checkpoint = {20, {{1}}};
  seals[peer(2)].checkpoint = {30, {{2}}};
  auto d = decide_resume(a, 2, 0, seals);
  BOOST_TEST((d.from == resume_decision::source::checkpoint));
  BOOST_TEST((d.version == state_version{30, 9}));
  BOOST_TEST(d.lost_unit == 2u);
  BOOST_REQUIRE(d.checkpoint_holders.size() == 1u);
  BOOST_TEST((d.checkpoint_holders[0] == peer(2)));
}

BOOST_AUTO_TEST_SUITE_END()
