// tests/runtime/core/planning/plan_fixture.hpp -- shoals and jobs to plan for.
#pragma once

#include "runtime/core/planning/plan.hpp"
#include "runtime/core/planning/plan_reasons.hpp"
#include "runtime/core/view.hpp"

#include <boost/test/unit_test.hpp>

#include <set>

namespace shoal::core {

inline member make_member(std::uint8_t n, std::uint64_t mflops = 100'000,
                          std::uint64_t memory = 1'000'000'000) {
  member m;
  m.id.peer[0] = n;
  m.id.incarnation = 1;
  m.device.mflops = mflops;
  m.device.memory_bytes = memory;
  return m;
}

inline view make_view(std::size_t members, std::uint32_t blocks = 8,
                      std::uint32_t microbatches = 8) {
  view v;
  v.number = 10;
  for (std::size_t i = 0; i < members; ++i)
    v.members.push_back(make_member(static_cast<std::uint8_t>(i + 1)));
  job_entry j;
  j.id = 5;
  j.blocks = blocks;
  j.microbatches = microbatches;
  j.block_flops = 20'000'000'000;
  j.head_flops = 10'000'000'000;
  j.block_state_bytes = 10'000'000;
  j.embed_state_bytes = 5'000'000;
  j.head_state_bytes = 5'000'000;
  j.activation_bytes = 100'000;
  if (members > 0)
    j.submitter = v.members.front().id.peer;
  v.jobs.push_back(j);
  return v;
}

inline view next_view(const view& v) {
  view out = v;
  out.previous = make_plan(v).jobs;
  ++out.number;
  return out;
}

inline island_place only(const view& v) {
  plan p = make_plan(v);
  BOOST_REQUIRE(p.jobs.size() == 1u);
  BOOST_REQUIRE(p.jobs.front().islands.size() == 1u);
  return p.jobs.front().islands.front();
}

/// Where the first island of the first job ran before.
inline island_place& was(view& v) {
  return v.previous.at(0).islands.at(0);
}
inline const island_place& was(const view& v) {
  return v.previous.at(0).islands.at(0);
}

// The functions on plans, for the only island of job 5.
inline assignment alone(const island_place& a) {
  return {5, {a}};
}
inline std::uint64_t digest(const island_place& a) {
  return digest({5, 0}, a);
}
inline prediction predict(const view& v, const island_place& a) {
  return predict(v, 5, a);
}
inline std::string to_text(const view& v, const island_place& a) {
  return to_text(v, alone(a));
}
inline std::vector<unheld_wish>
unheld_wishes(const view& v, const island_place& a) {
  return unheld_wishes(v, alone(a));
}
inline std::vector<idle_member>
idle_members(const view& v, const island_place& a) {
  return idle_members(v, alone(a));
}

/// Says that all has arrived at that island, or that it made no progress.
inline void mark(view& v, mark_kind kind) {
  set_mark(v.jobs.at(0), {kind, 0, was(v).since, 0});
}

inline std::set<member_id> workers(const island_place& a) {
  std::set<member_id> out;
  for (auto& r : a.replicas)
    for (auto& s : r.stages)
      out.insert(s.lead());
  return out;
}

} // namespace shoal::core
