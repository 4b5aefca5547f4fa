// tests/actors/job_moves_test.cpp -- state that moves while steps run, message
// by message: to who joins, and where others stand in for the dead meanwhile.
#include "runtime/core/planning/detours.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/view.hpp"
#include "tests/actors/job_fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <map>
#include <ostream>

BOOST_AUTO_TEST_SUITE(job_moves)

namespace bdata = boost::unit_test::data;
using namespace shoal::test;

/// So much state that a step cannot move it, and steps enough to move it all.
run_config long_run(run_config run) {
  run.steps = 40;
  run.copy_every = 1;
  run.validation_freq = 16;
  run.checkpoint_interval = 12;
  return run;
}
constexpr std::uint64_t large_state = 500'000'000;
/// Nothing to wait for, where replicas sum their gradients.
const shoal::core::network_profile fast_network{"fast", 1'000,
                                                1'000'000'000'000};

/// One that joins, and where.
struct joined_run {
  std::int64_t replicas, stages;
  std::size_t peers; ///< with the one that comes later
};
std::ostream& operator<<(std::ostream& out, const joined_run& r) {
  return out << r.replicas << " x " << r.stages << " on " << r.peers;
}
const joined_run joined_runs[] = {{2, 1, 2}, {1, 2, 2}, {1, 3, 3}, {2, 2, 4}};

/// The run without a join, on one peer.
const run_record& undisturbed(bool tied) {
  static std::map<bool, run_record> known;
  if (!known.contains(tied)) {
    small_shoal one(1, long_run(small_run(1, 1, tied)), some_text());
    one.submit();
    BOOST_REQUIRE(one.finish());
    known[tied] = one.record(0);
  }
  return known[tied];
}

/// The losses are those of the undisturbed run: the same bits with one replica.
void require_undisturbed(const joined_run& r, bool tied,
                         const run_record& got) {
  const run_record& want = undisturbed(tied);
  BOOST_REQUIRE_EQUAL(got.losses.size(), want.losses.size());
  for (std::size_t i = 0; i < got.losses.size(); ++i)
    if (r.replicas == 1)
      BOOST_TEST(got.losses[i] == want.losses[i]);
    else
      BOOST_TEST(std::abs(got.losses[i] / want.losses[i] - 1) < 1e-5);
}

/// A shoal whose last peer is away when its job begins.
std::unique_ptr<small_shoal> without_the_last(const joined_run& r, bool tied) {
  auto s = std::make_unique<small_shoal>(
    r.peers, long_run(small_run(r.replicas, r.stages, tied)), some_text());
  s->entry().block_state_bytes = large_state;
  s->kill(r.peers - 1);
  s->submit();
  return s;
}

/// What a joiner needs comes while steps run; when it takes part nothing
/// moves any more.
BOOST_DATA_TEST_CASE(a_joiner_is_brought_its_state_while_steps_run,
                     bdata::make(joined_runs) * bdata::make({false, true}), r,
                     tied) {
  const auto held = without_the_last(r, tied);
  auto& s = *held;
  const std::size_t joiner = r.peers - 1;
  while (s.record(0).losses.size() < 2)
    s.step();
  s.restart(joiner);
  const auto& plan = s.plan().jobs.at(0).islands.at(0);
  const auto arriving = plan.arriving;
  BOOST_REQUIRE(!arriving.empty());
  const std::size_t before = s.record(0).losses.size();
  while (!s.ended() && !s.plan().jobs.at(0).islands.at(0).arriving.empty())
    s.step();
  BOOST_REQUIRE(!s.ended());
  BOOST_TEST(s.record(0).losses.size() > before); // steps ran meanwhile
  std::size_t units = 0;
  for (const auto& f : arriving)
    units += f.last_unit - f.first_unit;
  BOOST_TEST(s.transfers(shoal::actors::link_kind::arrival) == units);
  const std::size_t moved = s.transfers(shoal::actors::link_kind::state);
  BOOST_REQUIRE(s.finish());
  BOOST_TEST(s.transfers(shoal::actors::link_kind::state) == moved);
  require_undisturbed(r, tied, s.record(0));
  BOOST_TEST(s.record(0).lost_states == 0u);
}

/// Any peer may die while state is on its way; the joiner too.
BOOST_DATA_TEST_CASE(a_death_while_state_arrives_loses_no_step,
                     bdata::make({joined_runs[2], joined_runs[3]})
                       * bdata::xrange(0, 3) * bdata::xrange(0, 700, 41),
                     r, turn, when) {
  const auto held = without_the_last(r, false);
  auto& s = *held;
  while (s.record(0).losses.size() < 2)
    s.step();
  s.restart(r.peers - 1);
  BOOST_REQUIRE(!s.plan().jobs.at(0).islands.at(0).arriving.empty());
  const auto victim = std::size_t(turn) % r.peers;
  if (!die_and_return(s, victim, when))
    return;
  const auto record = s.record(victim == 0 ? 1 : 0); // there from the start
  require_undisturbed(r, false, record);
  BOOST_TEST(record.lost_states == 0u);
}

/// A layout that loses a peer which does not come back.
const joined_run detour_runs[] = {{2, 2, 4}, {3, 2, 6}, {2, 3, 6}, {1, 3, 3}};

/// Who holds the dead stage's units runs them for its replica too, at once;
/// when it is back and has its state again all is as before, without a wait.
BOOST_DATA_TEST_CASE(others_stand_in_for_a_dead_stage_while_its_state_moves,
                     bdata::make(detour_runs) * bdata::make({false, true})
                       * bdata::xrange(0, 6),
                     r, tied, victim) {
  if (std::size_t(victim) >= r.peers)
    return;
  small_shoal s(r.peers, long_run(small_run(r.replicas, r.stages, tied)),
                some_text());
  s.entry().block_state_bytes = large_state;
  s.set_network(fast_network);
  s.submit();
  const std::size_t witness = victim == 0 ? 1 : 0;
  while (s.record(witness).losses.size() < 3)
    s.step();
  const std::size_t moved = s.transfers(shoal::actors::link_kind::state);
  s.kill(std::size_t(victim));
  const auto place = [&] { return s.plan().jobs.at(0).islands.at(0); };
  BOOST_TEST(shoal::core::makes_detour(place().replicas) == (r.replicas > 1));
  BOOST_TEST(shoal::core::replica_count(place().replicas)
             == std::uint32_t(r.replicas)); // none is dropped
  const std::size_t before = s.record(witness).losses.size();
  while (!s.ended() && s.record(witness).losses.size() < before + 4)
    s.step();
  s.restart(std::size_t(victim));
  while (!s.ended()
         && (!place().arriving.empty()
             || shoal::core::makes_detour(place().replicas)))
    s.step();
  BOOST_REQUIRE(!s.ended());
  BOOST_REQUIRE(s.finish());
  // Nobody has waited for state.
  BOOST_TEST(s.transfers(shoal::actors::link_kind::state) == moved);
  require_undisturbed(r, tied, s.record(witness));
  BOOST_TEST(s.record(witness).lost_states == 0u);
}

/// Another death, at any message of the detour, and the return of one.
BOOST_DATA_TEST_CASE(a_second_death_on_a_detour_loses_no_step,
                     bdata::make({detour_runs[0], detour_runs[1]})
                       * bdata::make({"1f1b", "zero_bubble"})
                       * bdata::xrange(0, 600, 47),
                     r, schedule, when) {
  run_config run = long_run(small_run(r.replicas, r.stages));
  run.copies = 2; // who stands in is followed
  run.schedule = schedule;
  small_shoal s(r.peers, run, some_text());
  s.entry().block_state_bytes = large_state;
  s.set_network(fast_network);
  s.submit();
  while (s.record(0).losses.size() < 2)
    s.step();
  s.kill(r.peers - 1);
  const std::size_t second = 1 + std::size_t(when) % (r.peers - 2);
  if (!die_and_return(s, second, when))
    return;
  require_undisturbed(r, false, s.record(0));
  BOOST_TEST(s.record(0).lost_states == 0u);
}

/// Deaths and returns at random, also while others stand in: steps may run
/// again, with the same samples, but none is another's.
BOOST_DATA_TEST_CASE(any_deaths_and_returns_give_the_same_losses,
                     bdata::make(detour_runs) * bdata::xrange(1, 15), r, seed) {
  run_config run = long_run(small_run(r.replicas, r.stages, seed % 2 == 0));
  run.schedule = seed % 3 == 0 ? "zero_bubble" : "1f1b";
  small_shoal s(r.peers, run, some_text(), true);
  s.entry().block_state_bytes = large_state;
  s.set_network(fast_network);
  s.submit();
  deaths_and_returns(s, r.peers, seed, 8, 2);
  BOOST_REQUIRE(s.finish());
  // What was run again took the place of what was given up.
  require_undisturbed({2, r.stages, r.peers}, seed % 2 == 0, s.record(0));
}

BOOST_AUTO_TEST_SUITE_END()
