// tests/runtime/core/planning/plan_fixture.hpp -- shoals and jobs to plan for.
#pragma once

#include "runtime/core/planning/plan.hpp"

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

inline assignment only(const view& v) {
  plan p = make_plan(v);
  BOOST_REQUIRE(p.jobs.size() == 1u);
  return p.jobs.front();
}

inline std::set<member_id> workers(const assignment& a) {
  std::set<member_id> out;
  for (auto& r : a.replicas)
    for (auto& s : r.stages)
      out.insert(s.where);
  return out;
}

} // namespace shoal::core
