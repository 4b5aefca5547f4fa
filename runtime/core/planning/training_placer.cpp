// runtime/core/planning/training_placer.cpp -- layout, copies and arrivals of an
// island that trains.
#include "runtime/core/planning/arrivals.hpp"
#include "runtime/core/planning/detours.hpp"
#include "runtime/core/planning/followers.hpp"
#include "runtime/core/planning/layout/layout.hpp"
#include "runtime/core/planning/memory_needs.hpp"
#include "runtime/core/planning/placement.hpp"
#include "runtime/core/planning/placer.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/schedule/schedule_choice.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>

namespace shoal::core {
namespace {

/// Whether `a` is closer to what the job wants than `b`.
bool nearer(const job_entry& job, const std::vector<replica_place>& a,
            const std::vector<replica_place>& b) {
  if (const auto had = replica_count(b);
      job.want_replicas > 0 && a.size() != had)
    return a.size() > had;
  // Stages share a member only for lack of members.
  if (wanted_stages(job) == 0)
    return false;
  return job.want_replicas > 0 ? workers(a).size() > workers(b).size()
                               : stages_apart(job, a) && !stages_apart(job, b);
}

layout choose_layout(const layout_problem& p, const view& v) {
  layout best = find_layout(p);
  const std::vector<replica_place> before = detour(p);
  std::optional<layout_score> was;
  if (!before.empty())
    was = score(p, before);
  if (!was)
    return best;
  layout kept{before, *was};
  if (working_state(v) == member_state::leaving)
    return kept; // not worth a move
  std::uint64_t percent = keep_percent;
  if (makes_detour(before)) // replicas that the job wants are not dropped
                            // lightly
    percent =
      p.job.want_replicas > 0 && best.replicas.size() < replica_count(before)
        ? fragile_percent
        : detour_keep_percent;
  const bool much_faster =
    best.score.cost * 100 < was->cost * (100 - percent)
    && !(p.job.want_replicas <= 0 && nearer(p.job, before, best.replicas));
  if (!best.replicas.empty()
      && (much_faster || nearer(p.job, best.replicas, before)))
    return best;
  return kept;
}

/// The same members with blocks split as evenly as possible.
std::vector<replica_place> evened(std::vector<replica_place> replicas) {
  for (replica_place& r : replicas) {
    const std::uint32_t blocks = r.stages.back().last_block;
    const auto stages = std::uint32_t(r.stages.size());
    for (std::uint32_t s = 0; s < stages; ++s) {
      r.stages[s].first_block = blocks * s / stages;
      r.stages[s].last_block = blocks * (s + 1) / stages;
    }
  }
  return replicas;
}

/// The memory that each member has on its host.
std::map<peer_id, std::uint64_t>
speeds(const std::vector<replica_place>& replicas, const layout_problem& p) {
  std::map<std::string, std::uint64_t> sharing;
  std::map<peer_id, std::uint64_t> mflops;
  auto used = workers(replicas);
  auto is_used = [&](const member* m) {
    return std::ranges::binary_search(used, m->id);
  };
  for (const member* m : p.members)
    sharing[m->host] += is_used(m) && !m->host.empty() ? 1 : 0;
  for (const member* m : p.members)
    mflops[m->id.peer] =
      m->device.mflops / std::max<std::uint64_t>(1, sharing[m->host]);
  return mflops;
}

/// Chooses the schedule; a layout that is kept keeps its schedule too.
void place_schedule(island_place& a, const layout_problem& p) {
  if (p.previous && p.previous->replicas == a.replicas) {
    a.schedule = p.previous->schedule;
    return;
  }
  const auto mflops = speeds(a.replicas, p);
  const std::vector<replica_place> split = a.replicas;
  set_schedule(a, p.job, mflops, p.memory, assumed_hop);
  // A stage with few blocks cannot be cut into the wanted number of runs.
  const std::size_t stages = a.replicas.empty() ? 0 : split[0].stages.size();
  if (stages > 1 && p.job.want_virtual > 1 && p.job.want_blocks.empty()
      && a.replicas[0].stages.size() == stages) {
    a.replicas = evened(split);
    set_schedule(a, p.job, mflops, p.memory, assumed_hop);
  }
}

/// On a new detour weight gradients are deferred, whatever the job wants, if
/// memory allows it: the stand-ins have other microbatches for which members
/// wait, and no schedule changes a sum (S-1, S-5).
void put_off_weights(island_place& a, const layout_problem& p) {
  if (!makes_detour(a.replicas)
      || (p.previous && p.previous->replicas == a.replicas))
    return;
  job_entry deferring = p.job;
  deferring.want_schedule = schedule_kind::zero_bubble;
  deferring.want_virtual = 1; // the stages are already cut
  island_place out = a;
  set_schedule(out, deferring, speeds(a.replicas, p), p.memory, assumed_hop);
  if (out.schedule == schedule_kind::zero_bubble && fits_memory(out, p))
    a = std::move(out);
}

void lay_out_training(island_draft& d, const view& v) {
  d.kept = keeps_arriving(d.p);
  d.at.replicas =
    d.kept ? d.p.previous->replicas : choose_layout(d.p, v).replicas;
  if (d.at.replicas.empty())
    d.at.why_waiting = why_nowhere(d.p);
  place_schedule(d.at, d.p);
}

void complete_training(island_draft& d, const view&) {
  if (d.kept && fits_memory(*d.p.previous, d.p)) {
    d.at.followers = d.p.previous->followers;
    d.at.copy_every = d.p.previous->copy_every;
    d.at.arriving = d.p.previous->arriving;
    return;
  }
  place_followers(d.at, d.p);
  let_arrive(d.at, d.p);
  put_off_weights(d.at, d.p);
}

} // namespace

const placer training_placer{"train", "replica", true, lay_out_training,
                             complete_training};

} // namespace shoal::core
