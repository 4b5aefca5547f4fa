// tests/runtime/core/training/job_pieces.hpp -- places, seals and lone cores for
// the tests of job_core.
#pragma once

#include "runtime/core/planning/plan.hpp"
#include "runtime/core/training/job/job_core.hpp"
#include "runtime/core/view.hpp"
#include "tests/support/held_parts.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <vector>

namespace shoal::test {

using namespace shoal::core;
namespace act = shoal::core::job_action;
namespace ev = shoal::core::job_event;

inline peer_id peer(std::uint8_t n) {
  peer_id p{};
  p[0] = n;
  return p;
}
inline member_id id(std::uint8_t n) {
  return {peer(n), 1};
}

/// Replicas of stages of one block each; peers from 1 in order.
inline island_place
make_place(std::uint32_t replicas, std::uint32_t stages, epoch since = 2) {
  island_place a;
  a.since = since;
  std::uint8_t n = 0;
  for (std::uint32_t r = 0; r < replicas; ++r) {
    replica_place p;
    for (std::uint32_t s = 0; s < stages; ++s)
      p.stages.push_back(stage_on(id(++n), s, s + 1));
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

/// What a seal says of a store with all parts of these.
inline std::vector<stored_checkpoint>
whole(const std::vector<checkpoint_ref>& all) {
  std::vector<stored_checkpoint> out;
  for (const checkpoint_ref& c : all)
    out.push_back({c, {}});
  return out;
}

/// Of the first island of job 7.
inline std::uint64_t digest(const island_place& a) {
  return core::digest({7, 0}, a);
}
inline job_header header_of(const island_place& a) {
  return {7, digest(a), a.since};
}

inline job_config make_config(std::uint8_t self, std::uint32_t blocks) {
  job_config c;
  c.id = {7, 0};
  c.self = peer(self);
  c.blocks = blocks;
  c.microbatches = 4;
  c.total_steps = 3;
  c.checkpoint_at_end = false;
  return c;
}

inline ev::view_changed show(const island_place& a) {
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

inline ev::prepared make_prepared(const island_place& a, std::uint32_t blocks,
                                  std::uint8_t self, std::uint64_t step) {
  ev::prepared e{digest(a), step, {}, {}, {}};
  for (std::uint32_t u : held_by(a, peer(self))) {
    e.units.push_back({u, 0.1 * (u + 1) + 0.3 + 1e-7 * (u + 3)});
    if (u == blocks + 1)
      e.losses = {1.1, 2.2, 3.3, 4.5};
  }
  return e;
}

/// A lone peer up to run_step(1).
inline job_core started(const island_place& a, std::uint32_t blocks,
                        const std::function<void(job_config&)>& change = {}) {
  job_config c = make_config(1, blocks);
  if (change)
    change(c);
  job_core core(c);
  (void)core.step(ev::blobs_held{}, 0);
  (void)core.step(show(a), 0);
  auto out = core.step(ev::halted{digest(a)}, 0);
  BOOST_REQUIRE(all<act::initialise_unit>(out).size() == blocks + 2);
  for (std::uint32_t u = 0; u < blocks + 2; ++u)
    out = core.step(ev::loaded{digest(a), u}, 0);
  BOOST_REQUIRE(all<act::run_step>(out).size() == 1u);
  return core;
}

inline seal make_seal(const island_place& a, std::vector<std::uint32_t> units,
                      state_version at) {
  seal s;
  s.header = header_of(a);
  for (std::uint32_t u : units)
    s.units.push_back({u, at, false});
  s.last.version = at;
  s.last.replicas = 1;
  return s;
}

} // namespace shoal::test
