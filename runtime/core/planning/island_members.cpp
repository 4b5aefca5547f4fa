// runtime/core/planning/island_members.cpp -- deals members out to islands.
#include "runtime/core/planning/island_members.hpp"

#include "runtime/core/planning/layout/layout.hpp"
#include "runtime/core/planning/placement.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace shoal::core {
namespace {

/// The island in which each member had work or kept state. Served models have no
/// state that moves: a member without a stage may take one in any island.
std::map<member_id, std::uint32_t>
islands_before(const job_entry& job, const assignment* previous) {
  std::map<member_id, std::uint32_t> out;
  if (previous == nullptr)
    return out;
  for (std::uint32_t i = 0; i < previous->islands.size(); ++i) {
    const island_place& at = previous->islands[i];
    for (const member_id& id : workers(at.replicas))
      out.emplace(id, i);
    if (job.kind == job_kind::serve)
      continue;
    for (const auto* places : {&at.followers, &at.arriving})
      for (const holder_place& f : *places)
        out.emplace(f.where.member, i);
  }
  for (std::uint32_t i = 0;
       i < previous->islands.size() && job.kind != job_kind::serve; ++i)
    for (const member_id& id : previous->islands[i].sealers)
      out.emplace(id, i);
  return out;
}

} // namespace

const island_place* island_of(const assignment* previous, std::uint32_t index) {
  return previous != nullptr && index < previous->islands.size()
           ? &previous->islands[index]
           : nullptr;
}

std::vector<member_list> members_by_island(const view& v, const job_entry& job,
                                           const assignment* previous) {
  std::vector<member_list> out(islands_of(job));
  const auto before = islands_before(job, previous);
  std::vector<std::uint64_t> speeds(out.size());
  const auto put = [&](const member* m, std::size_t island) {
    out[island].push_back(m);
    speeds[island] = std::min(speeds[island] + m->device.mflops, cost_never);
  };
  const member_state state = working_state(v);
  member_list fresh;
  for (const member& m : v.members) {
    if (!usable(m, state))
      continue;
    const auto was = before.find(m.id);
    if (was != before.end() && was->second < out.size())
      put(&m, was->second);
    else
      fresh.push_back(&m);
  }
  const std::size_t stages =
    job.kind == job_kind::serve ? wanted_stages(job) : 0;
  for (const member* m : fresh) {
    std::size_t neediest = 0;
    const auto needs = [&](std::size_t i) { // less: more
      return std::pair(out[i].size() >= stages, speeds[i]);
    };
    for (std::size_t i = 1; i < out.size(); ++i)
      if (needs(i) < needs(neediest))
        neediest = i;
    put(m, neediest);
  }
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    std::ranges::sort(out[i], {}, [](const member* m) { return m->id; });
    leave_out_cut(v, island_of(previous, i), out[i]);
  }
  return out;
}

} // namespace shoal::core
