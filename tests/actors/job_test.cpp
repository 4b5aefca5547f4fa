// tests/actors/job_test.cpp -- whole runs, message by message.
//
// The same run on every layout, with peers that die at any message: the losses
// must be those of one peer, to the last bit for pipelines.
#include "actors/training/training_state.hpp"
#include "runtime/core/job_entry.hpp"
#include "runtime/core/planning/plan.hpp"
#include "tests/actors/job_fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <ostream>

BOOST_AUTO_TEST_SUITE(job)

namespace bdata = boost::unit_test::data;
using namespace shoal::test;

BOOST_AUTO_TEST_CASE(one_peer_trains_evaluates_and_saves) {
  const auto& r = alone(false);
  BOOST_TEST(r.losses.size() == std::size_t(steps));
  BOOST_TEST(r.state == "done");
  BOOST_TEST(r.evaluations == 3u); // steps 0, 3, 6
  BOOST_TEST(r.checkpoints == 3u); // of steps 2, 4 (one takes a step), 6
  BOOST_TEST(r.losses.back() < r.losses.front());
}

BOOST_DATA_TEST_CASE(stages_change_no_bit,
                     bdata::make({2, 3, 4}) * bdata::make({1, 2, 4})
                       * bdata::make({false, true}),
                     stages, peers, tied) {
  // With fewer peers than stages some stages share a peer.
  shoal::test::small_shoal s(std::size_t(peers), small_run(1, stages, tied),
                             some_text());
  s.submit();
  BOOST_REQUIRE(s.finish());
  require_same(s.record(0), true, tied);
}

/// A schedule on a number of stages and peers.
struct scheduled_run {
  const char* schedule;
  std::int64_t runs; ///< of blocks on each peer
  std::int64_t stages;
  std::size_t peers;
};
std::ostream& operator<<(std::ostream& out, const scheduled_run& r) {
  return out << r.schedule << " with " << r.runs << " runs, " << r.stages
             << " stages on " << r.peers << " peers";
}
const scheduled_run scheduled_runs[] = {
  {"1f1b", 1, 2, 2},        {"1f1b", 1, 4, 2},        {"interleaved", 2, 2, 2},
  {"zero_bubble", 1, 2, 2}, {"zero_bubble", 1, 4, 4}, {"zero_bubble", 1, 4, 2},
  {"zero_bubble", 2, 2, 2}, {"auto", -1, 3, 3},
};

run_config
with_schedule(run_config run, const char* schedule, std::int64_t runs) {
  run.schedule = schedule;
  run.virtual_degree = runs;
  return run;
}

BOOST_DATA_TEST_CASE(schedules_change_no_bit,
                     bdata::make(scheduled_runs) * bdata::make({false, true}),
                     r, tied) {
  shoal::test::small_shoal s(
    r.peers, with_schedule(small_run(1, r.stages, tied), r.schedule, r.runs),
    some_text());
  s.submit();
  // The plan meets the wishes.
  const auto& place = s.plan().jobs.at(0).islands.at(0);
  if (r.runs > 0) {
    BOOST_TEST(std::string(shoal::core::to_text(place.schedule)) == r.schedule);
    BOOST_TEST(place.replicas.at(0).stages.size()
               == std::size_t(r.stages * r.runs));
  }
  BOOST_REQUIRE(s.finish());
  require_same(s.record(0), true, tied);
}

/// Training gives the device back within each block's passes (D-1), whatever
/// runs in between.
BOOST_AUTO_TEST_CASE(passes_of_stages_yield_to_urgent_work) {
  shoal::test::small_shoal s(2, small_run(1, 2), some_text());
  std::size_t yielded[2] = {0, 0};
  for (const std::size_t node : {0u, 1u})
    s.between_segments(node, [&, node](shoal::core::job_id job) {
      BOOST_REQUIRE(job == 1u);
      ++yielded[node];
    });
  s.submit();
  BOOST_REQUIRE(s.finish());
  // Forward and backward of each microbatch, on each stage.
  const std::size_t passes = std::size_t(steps) * 6 * 2;
  BOOST_TEST(yielded[0] >= passes);
  BOOST_TEST(yielded[1] >= passes);
  require_same(s.record(0), true, false);
}

BOOST_DATA_TEST_CASE(replicas_agree_to_rounding,
                     bdata::make({2, 3}) * bdata::make({1, 2})
                       * bdata::make({false, true}),
                     replicas, stages, tied) {
  const auto peers = std::size_t(replicas * stages);
  shoal::test::small_shoal s(peers, small_run(replicas, stages, tied),
                             some_text());
  s.submit();
  BOOST_REQUIRE(s.finish());
  BOOST_TEST(s.plan().jobs.empty());
  for (std::size_t n = 0; n < peers; ++n)
    require_same(s.record(n), false, tied);
}

BOOST_AUTO_TEST_CASE(unequal_stages_and_a_replica_on_one_peer) {
  run_config run = small_run(2, 2);
  run.layers_per_stage = {3, 1};
  shoal::test::small_shoal s(3, run, some_text());
  s.submit();
  BOOST_REQUIRE(s.finish());
  require_same(s.record(0), false, false);
}

const scheduled_run schedules[] = {
  {"1f1b", 1, 2, 4}, {"interleaved", 2, 2, 4}, {"zero_bubble", 1, 2, 4}};

/// A 2 x 2 run in which a peer dies after a number of messages and returns some
/// time later.
BOOST_DATA_TEST_CASE(a_death_at_any_message_loses_no_step,
                     bdata::make(schedules)
                       * (bdata::xrange(20, 1105, 7) ^ bdata::xrange(155)),
                     r, when, turn) {
  shoal::test::small_shoal s(
    r.peers, with_schedule(small_run(2, r.stages), r.schedule, r.runs),
    some_text());
  s.submit();
  const auto victim = std::size_t(turn) % 4;
  for (int i = 0; i < when && !s.ended(); ++i)
    s.step();
  // The run takes some 1,110 messages: no peer dies after its end.
  BOOST_REQUIRE(!s.ended());
  s.kill(victim);
  for (int i = 0; i < 150 && !s.ended(); ++i)
    s.step();
  if (!s.ended())
    s.restart(victim);
  BOOST_REQUIRE(s.finish());
  const std::size_t witness = (victim + 1) % 4;
  require_same(s.record(witness), false, false);
}

/// One pipeline, on as many peers as stages, fewer or one more: followers have
/// the state that died with its owner.
BOOST_DATA_TEST_CASE(a_death_without_replicas_loses_no_step,
                     bdata::make({2, 3, 4}) * bdata::make({0, 1})
                       * bdata::make({false, true})
                       * bdata::xrange(31, 700, 53),
                     stages, spare, tied, when) {
  const auto peers = std::size_t(stages + spare);
  shoal::test::small_shoal s(peers, small_run(1, stages, tied), some_text());
  s.submit();
  BOOST_TEST(!s.plan().jobs.at(0).islands.at(0).followers.empty());
  const auto victim = std::size_t(when) % peers;
  if (!die_and_return(s, victim, when))
    return; // with few peers a run takes fewer messages
  const auto& record = s.record((victim + 1) % peers);
  require_same(record, true, tied);
  BOOST_TEST(record.lost_states == 0u);
}

/// Copies of whole states every few steps: few steps are run again, with the
/// same bits.
BOOST_DATA_TEST_CASE(a_death_goes_back_to_the_newest_copies,
                     bdata::make({2, 3}) * bdata::make({2, 3, 4})
                       * bdata::make({0, 1}) * bdata::make({false, true})
                       * bdata::xrange(150, 700, 67),
                     every, stages, spare, tied, when) {
  const auto peers = std::size_t(stages + spare);
  run_config run = small_run(1, stages, tied);
  run.copy_every = every;
  run.checkpoint_enable = false;
  shoal::test::small_shoal s(peers, run, some_text());
  s.submit();
  BOOST_TEST(s.plan().jobs.at(0).islands.at(0).copy_every
             == std::uint32_t(every));
  const auto victim = std::size_t(when) % peers;
  if (!die_and_return(s, victim, when))
    return;
  const auto& record = s.record((victim + 1) % peers);
  require_same(record, true, tied);
  BOOST_TEST(record.repeated <= std::size_t(every));
}

/// Two copies: two die at once.
BOOST_DATA_TEST_CASE(two_deaths_at_once_lose_no_step_of_two_copies,
                     bdata::xrange(100, 700, 37), when) {
  run_config run = small_run(1, 4);
  run.copies = 2;
  shoal::test::small_shoal s(4, run, some_text());
  s.submit();
  for (int i = 0; i < when; ++i)
    s.step();
  BOOST_REQUIRE(!s.ended());
  const auto first = std::size_t(when) % 4, second = (first + 1) % 4;
  s.kill(first);
  s.kill(second);
  BOOST_REQUIRE(s.finish());
  const auto& record = s.record((first + 2) % 4);
  require_same(record, true, false);
  BOOST_TEST(record.lost_states == 0u);
}

BOOST_AUTO_TEST_CASE(the_loss_of_both_copies_is_reported_and_survived) {
  shoal::test::small_shoal s(4, small_run(2, 2), some_text());
  s.submit();
  while (s.record(0).checkpoints == 0)
    s.step();
  // All but one die at once: no stage is complete any more.
  const auto& stages = s.plan().jobs.at(0).islands.at(0).replicas;
  const auto keep = stages[0].stages[0].lead().peer;
  std::size_t kept = 0;
  for (std::size_t n = 0; n < 4; ++n)
    if (s.view().members.size() > 1) {
      shoal::core::peer_id id{};
      id[0] = std::uint8_t(n + 1);
      if (id == keep)
        kept = n;
      else
        s.kill(n);
    }
  BOOST_REQUIRE(s.finish());
  BOOST_TEST((s.view().jobs[0].state == shoal::core::job_state::done));
  BOOST_TEST(s.view().jobs[0].done_step == std::uint64_t(steps));
  static_cast<void>(kept);
}

/// Two stages, so that a death goes back to a checkpoint; it is in two stores,
/// and one of them has rotted.
BOOST_DATA_TEST_CASE(a_file_damaged_in_one_store_comes_from_another,
                     bdata::make({0, 1}), n) {
  const auto victim = std::size_t(n);
  run_config run = small_run(1, 2);
  run.copies = 0; // else nothing would be lost
  shoal::test::small_shoal s(2, run, some_text());
  s.submit();
  while (s.record(1 - victim).losses.size() < 5)
    s.step();
  s.kill(victim);
  s.rot(victim);
  s.restart(victim);
  BOOST_REQUIRE(s.finish());
  BOOST_TEST((s.view().jobs[0].state == shoal::core::job_state::done));
}

/// One flipped bit in the state that a returning peer gets: detected by
/// digests, reported once and repaired, since later digests are equal again.
BOOST_DATA_TEST_CASE(a_state_that_differs_is_noticed_and_taken_anew,
                     bdata::make({1, 2}), stages) {
  run_config run = small_run(2, stages);
  run.steps = 90; // more than two rounds of digests
  run.validation_enable = run.checkpoint_enable = false;
  const auto peers = std::size_t(2 * stages);
  shoal::test::small_shoal s(peers, run, some_text());
  s.submit();
  const auto until = [&](std::size_t step) {
    while (s.record(0).losses.size() < step)
      s.step();
  };
  until(3);
  s.kill(peers - 1);
  until(5);
  s.flip_next(shoal::actors::link_kind::state);
  s.restart(peers - 1);
  BOOST_REQUIRE(s.finish());
  const auto record = s.record(0);
  BOOST_TEST(record.losses.size() == 90u);
  BOOST_TEST(record.lost_states == 0u);
  const std::string& texts = record.texts;
  const auto first = texts.find("state differed from that of other peers");
  BOOST_REQUIRE(first != std::string::npos);
  BOOST_TEST(texts.find("state differed", first + 1) == std::string::npos,
             texts);
}

/// Nobody asks it what it sees, but it hears what becomes of the stall.
BOOST_AUTO_TEST_CASE(a_peer_that_does_not_seal_keeps_a_flight_record) {
  run_config run = small_run(1, 1);
  run.copies = 0;
  shoal::test::small_shoal s(4, run, some_text());
  s.submit();
  while (s.record(0).losses.size() < 2)
    s.step();
  const auto& sealers = s.plan().jobs.at(0).islands.at(0).sealers;
  std::vector<std::size_t> others;
  for (std::size_t n = 0; n < 4; ++n) {
    const auto& id = s.view().members[n].id;
    if (std::ranges::find(sealers, id) == sealers.end())
      others.push_back(n);
    else
      s.silence(n);
  }
  BOOST_REQUIRE(!others.empty());
  const std::size_t sealer = others[0] == 0 ? 3 : 0;
  shoal::core::stall_report r;
  r.header.job = 1;
  for (const char* verdict : {"it is expelled: one says", "another says so"}) {
    r.verdict = verdict;
    s.pass(sealer, others[0], r);
  }
  for (int i = 0; i < 200; ++i)
    s.step();
  const auto flights = s.flights(others[0]);
  BOOST_TEST_REQUIRE(flights.size() == 1u); // of both words
  BOOST_TEST((std::filesystem::status(flights[0].parent_path()).permissions()
              == std::filesystem::perms::owner_all));
}

/// Steps that were made while a peer was away have no time here: what it took
/// since the last one that it began is none.
BOOST_AUTO_TEST_CASE(steps_that_are_caught_up_with_have_no_speed) {
  run_config run = small_run(2, 1);
  run.steps = 12;
  shoal::test::small_shoal s(2, run, some_text());
  s.submit();
  while (s.record(1).losses.size() < 3)
    s.step();
  s.cut_off(1);
  const std::size_t reached = s.record(1).losses.size();
  while (s.record(0).losses.size() < reached + 4)
    s.step();
  const std::size_t there = s.record(0).losses.size();
  s.bring_back(1);
  BOOST_REQUIRE(s.finish());
  std::size_t missed = 0;
  for (const shoal::runtime::job_event& e : s.events(1)) {
    if (e.kind != shoal::runtime::job_event_kind::step)
      continue;
    const bool away = e.step > reached && e.step <= there;
    missed += away;
    BOOST_TEST((e.tokens_per_s == 0) == away, "step " << e.step);
  }
  BOOST_TEST(missed == there - reached);
}

BOOST_AUTO_TEST_CASE(draining_ends_after_a_step_with_a_checkpoint) {
  run_config run = small_run(2, 2);
  run.steps = 1000;
  run.checkpoint_interval = 100000;
  shoal::test::small_shoal s(4, run, some_text());
  s.submit();
  while (s.record(0).losses.size() < 3)
    s.step();
  s.drain();
  BOOST_REQUIRE(s.finish());
  const auto r = s.record(0);
  BOOST_TEST(r.state == "cancelled");
  BOOST_TEST(r.losses.size() < 10u);
  BOOST_TEST(r.checkpoints == 1u);
}

BOOST_AUTO_TEST_CASE(a_cancel_outlives_the_node_that_took_it) {
  run_config run = small_run(2, 2);
  run.steps = 1000;
  run.checkpoint_interval = 100000;
  shoal::test::small_shoal s(5, run, some_text());
  s.submit();
  while (s.record(0).losses.size() < 3)
    s.step();
  s.cancel(0);
  s.kill(0);
  BOOST_REQUIRE(s.finish());
  const auto r = s.record(1);
  BOOST_TEST(r.state == "cancelled");
  BOOST_TEST(r.losses.size() < 10u);
  BOOST_TEST(r.checkpoints == 1u);
}

BOOST_AUTO_TEST_CASE(a_waiting_job_that_is_to_end_ends_at_once) {
  run_config run = small_run(2, 2);
  run.steps = 1000;
  shoal::test::small_shoal s(4, run, some_text());
  s.entry().block_state_bytes = std::uint64_t{1} << 50; // fits nowhere
  s.submit();
  for (int i = 0; i < 50; ++i)
    s.step();
  BOOST_TEST_REQUIRE(!s.ended());
  s.cancel(3);
  BOOST_REQUIRE(s.finish(1000));
  BOOST_TEST(s.record(0).state == "cancelled");
}

BOOST_AUTO_TEST_SUITE_END()
