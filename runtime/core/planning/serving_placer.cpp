// runtime/core/planning/serving_placer.cpp -- where a pipeline of a served model
// runs.
//
// A pipeline is one replica, with as few stages as fit unless the job wants another
// number. Its stages are found by the search of training
// (layout/layout.hpp) with the costs of a pass: the job's microbatches are passes
// that are under way at once, so the step's time is that of a token through all
// stages, and the others behind it. A pipeline has no state besides its weights,
// which are on disks: nothing follows it and nothing arrives. The stages that the
// job asks for are spread over as many members as have room; they are spread again
// as soon as a member that was missing is back.
#include "runtime/core/planning/layout/layout.hpp"
#include "runtime/core/planning/memory_needs.hpp"
#include "runtime/core/planning/placement.hpp"
#include "runtime/core/planning/placer.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <functional>
#include <vector>

namespace shoal::core {
namespace {

/// Whether all members of the former place still can work for it.
bool is_whole(const layout_problem& p) {
  if (!p.previous || p.previous->replicas.empty())
    return false;
  return std::ranges::all_of(
    p.previous->replicas.front().stages, [&](const stage_place& s) {
      return std::ranges::any_of(
        p.members, [&](const member* m) { return m->id == s.lead(); });
    });
}

/// "pipeline 2 of 3: ", where there are several.
std::string which_of(const layout_problem& p) {
  const std::uint32_t all = islands_of(p.job);
  if (all < 2)
    return {};
  return "pipeline " + std::to_string(p.island + 1) + " of "
         + std::to_string(all) + ": ";
}

/// The fewest stages that the memory of the members may be enough for.
std::uint32_t least_stages(const layout_problem& p) {
  const job_entry& j = p.job;
  std::vector<std::uint64_t> memory;
  for (const member* m : p.members)
    if (const auto at = p.memory.find(m->id.peer); at != p.memory.end())
      memory.push_back(at->second);
  std::ranges::sort(memory, std::greater<>{});
  const std::uint64_t need = saturating_add(
    std::min(j.embed_state_bytes + j.head_state_bytes, cost_never),
    saturating_mul(j.blocks, j.block_state_bytes));
  std::uint64_t have = 0;
  std::uint32_t stages = 0;
  while (stages < memory.size() && have < need)
    have = saturating_add(have, std::min(memory[stages++], cost_never));
  return std::max(1u, stages);
}

/// The best layout with the fewest stages that fit, if the job leaves their number
/// open: a stream's token passes all weights either way, and what is left of the
/// members may hold other pipelines.
layout smallest_layout(const layout_problem& p) {
  if (wanted_stages(p.job) > 0)
    return find_spread_layout(p);
  job_entry job = p.job;
  const layout_problem with_stages{job,    p.members,    p.memory, p.previous,
                                   p.busy, p.all_memory, p.island};
  const auto most = std::min(p.members.size(), std::size_t{p.job.blocks});
  for (std::uint32_t stages = least_stages(p); stages <= most; ++stages) {
    job.want_stages = std::int32_t(stages);
    if (layout best = find_layout(with_stages); !best.replicas.empty())
      return best;
  }
  return {};
}

/// The members among which the stages that the job wants are spread.
std::size_t spread(const job_entry& job, const std::vector<replica_place>& a) {
  return std::min<std::size_t>(wanted_stages(job), workers(a).size());
}

/// Whether the pipeline moves from its former place, which still has room for it.
/// A move costs what the caches hold: only a clearly faster place is worth it, or
/// one that spreads the stages further.
bool is_worth_a_move(const layout& to, const layout_score& was,
                     const layout_problem& p, const view& v) {
  if (to.replicas.empty())
    return false;
  const std::size_t now = spread(p.job, to.replicas);
  const std::size_t before = spread(p.job, p.previous->replicas);
  if (now != before)
    return now > before && working_state(v) == member_state::active;
  return to.score.cost * 100 < was.cost * (100 - keep_percent);
}

void lay_out_serving(island_draft& d, const view& v) {
  layout best = smallest_layout(d.p);
  if (is_whole(d.p))
    if (const auto was = score(d.p, d.p.previous->replicas);
        was && !is_worth_a_move(best, *was, d.p, v))
      best.replicas = d.p.previous->replicas;
  d.at.replicas = std::move(best.replicas);
  const bool others_work =
    std::ranges::any_of(v.members, [state = working_state(v)](const member& m) {
      return usable(m, state);
    });
  if (d.at.replicas.empty())
    d.at.why_waiting =
      which_of(d.p)
      + (d.p.members.empty() && others_work
           ? "no peer is left: each pipeline has peers of its own"
           : why_nowhere(d.p));
}

void complete_serving(island_draft&, const view&) {
}

} // namespace

const placer serving_placer{"serve", "pipeline", false, lay_out_serving,
                            complete_serving};

} // namespace shoal::core
