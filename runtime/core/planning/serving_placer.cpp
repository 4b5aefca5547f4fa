// runtime/core/planning/serving_placer.cpp -- where a pipeline of a served model
// runs.
//
// A pipeline is one replica. Its stages are found by the search of training
// (layout/layout.hpp) with the costs of a pass: the job's microbatches are passes
// that are under way at once, so the step's time is that of a token through all
// stages, and the others behind it. A pipeline has no state besides its weights,
// which are on disks: nothing follows it and nothing arrives.
#include "runtime/core/planning/layout/layout.hpp"
#include "runtime/core/planning/memory_needs.hpp"
#include "runtime/core/planning/placer.hpp"
#include "runtime/core/planning/plan.hpp"

#include <algorithm>

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
  if (p.job.want_islands < 2)
    return {};
  return "pipeline " + std::to_string(p.island + 1) + " of "
         + std::to_string(p.job.want_islands) + ": ";
}

void lay_out(island_draft& d, const view&) {
  layout best = find_layout(d.p);
  d.at.replicas = std::move(best.replicas);
  if (is_whole(d.p)) {
    // A move costs what the caches hold: only a clearly faster place is worth it.
    const auto was = score(d.p, d.p.previous->replicas);
    if (was
        && (d.at.replicas.empty()
            || best.score.cost * 100 >= was->cost * (100 - keep_percent)))
      d.at.replicas = d.p.previous->replicas;
  }
  if (d.at.replicas.empty())
    d.at.why_waiting = which_of(d.p) + why_nowhere(d.p);
}

void complete(island_draft&, const view&) {
}

} // namespace

const placer serving_placer{"serve", "pipeline", false, lay_out, complete};

} // namespace shoal::core
