// runtime/core/planning/plan.cpp -- from a view to assignments.
#include "runtime/core/planning/plan.hpp"

#include "runtime/core/planning/arrivals.hpp"
#include "runtime/core/planning/detours.hpp"
#include "runtime/core/planning/file_keepers.hpp"
#include "runtime/core/planning/followers.hpp"
#include "runtime/core/planning/host_memory.hpp"
#include "runtime/core/planning/island_members.hpp"
#include "runtime/core/planning/layout/layout.hpp"
#include "runtime/core/planning/placement.hpp"
#include "runtime/core/planning/placer.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <tuple>

namespace shoal::core {
namespace {

/// The memory that each device has left for jobs later in the order.
class ledger {
public:
  /// @param placed where jobs already run
  ledger(const view& v, const std::vector<assignment>& placed)
    : memory_(memory_for_jobs(v, placed)), all_(memory_) {}

  layout_problem
  problem(const job_entry& job, std::uint32_t island, member_list members,
          const island_place* previous) const {
    return {job, std::move(members), memory_, previous, busy_, all_, island};
  }

  void take_layout(const layout_problem& p, const island_place& a) {
    for (const auto& need :
         predict_replicas(p.job, p.members, a.replicas).members) {
      std::uint64_t& left = memory_[need.where.peer];
      left -= std::min(left, need.bytes);
      other_work& busy = busy_[need.where.peer];
      ++(p.job.kind == job_kind::serve ? busy.serving : busy.training);
    }
  }

  /// Sets p.memory to the amount that all layouts leave, plus that of `a`
  /// itself.
  void leave_only_rest(layout_problem& p, const island_place& a) const {
    p.memory = memory_;
    for (const auto& need :
         predict_replicas(p.job, p.members, a.replicas).members)
      p.memory[need.where.peer] += need.bytes;
  }

  /// After leave_only_rest: takes the memory of what runs, if that is not the
  /// layout taken before, and of its copies.
  void take_copies(const layout_problem& p, const island_place& a) {
    memory_ = p.memory;
    std::map<member_id, std::uint64_t> bytes = copy_bytes(p.job, a);
    for (const auto& need :
         predict_replicas(p.job, p.members, a.replicas).members)
      bytes[need.where] += need.bytes;
    for (const auto& [who, taken] : bytes) {
      std::uint64_t& left = memory_[who.peer];
      left -= std::min(left, taken);
    }
  }

private:
  memory_by_peer memory_;
  memory_by_peer all_;
  std::map<peer_id, other_work> busy_;
};

/// The running jobs in the order in which they take memory: a job of higher
/// priority takes it even from one that runs; otherwise the older job keeps it.
std::vector<const job_entry*> in_order(const view& v) {
  std::vector<const job_entry*> out;
  for (const job_entry& job : v.jobs)
    if (job.state == job_state::running)
      out.push_back(&job);
  std::ranges::sort(out, {}, [](const job_entry* j) {
    return std::tuple(-j->priority, j->changed, j->id);
  });
  return out;
}

/// Where the job ran before. That comes from the view and need not be sound: it
/// is ignored if it is not.
const assignment* previous_of(const view& v, const job_entry& job) {
  const auto was = std::ranges::find(v.previous, job.id, &assignment::job);
  return was == v.previous.end() || !is_sound(job, *was) ? nullptr : &*was;
}

/// The number of the place: that of the former one if nothing has changed.
epoch since_of(const island_draft& d, const view& v) {
  if (d.p.previous == nullptr || is_retried(d.p))
    return v.number;
  island_place same = d.at;
  same.since = d.p.previous->since;
  return same == *d.p.previous ? same.since : v.number;
}

} // namespace

plan make_plan(const view& v) {
  plan out;
  out.number = v.number;
  ledger books(v, v.previous);
  std::vector<island_draft> drafts;
  for (const job_entry* job : in_order(v)) {
    const assignment* previous = previous_of(v, *job);
    std::uint32_t index = 0;
    for (member_list& members : members_by_island(v, *job, previous)) {
      island_draft& d = drafts.emplace_back(
        island_draft{books.problem(*job, index, std::move(members),
                                   island_of(previous, index)),
                     {},
                     false});
      placer_of(job->kind).lay_out(d, v);
      books.take_layout(d.p, d.at);
      ++index;
    }
  }
  // Copies are placed where no island's layout needs the memory.
  for (island_draft& d : drafts) {
    books.leave_only_rest(d.p, d.at);
    placer_of(d.p.job.kind).complete(d, v);
    place_roles(d.at, v, d.p.job.submitter, d.p.previous);
    place_keepers(d.at, v, d.p, d.p.previous);
    place_part_keepers(d.at, v, d.p, d.p.previous);
    place_sealers(d.at, v, d.p, d.p.previous);
    d.at.since = since_of(d, v);
    books.take_copies(d.p, d.at);
    if (d.p.island == 0)
      out.jobs.push_back({d.p.job.id, {}});
    out.jobs.back().islands.push_back(std::move(d.at));
  }
  std::ranges::sort(out.jobs, {}, &assignment::job);
  return out;
}

std::string never_fits(const view& v, const job_entry& job) {
  if (job.kind == job_kind::serve)
    if (std::string why = lacks_disk(v, job, 1); !why.empty())
      return why;
  std::uint32_t index = 0;
  for (member_list& members : members_by_island(v, job, nullptr)) {
    const layout_problem p =
      ledger(v, {}).problem(job, index++, std::move(members), nullptr);
    if (p.members.empty())
      continue; // members that can work may still join
    island_draft d{p, {}, false};
    placer_of(job.kind).lay_out(d, v);
    if (d.at.replicas.empty())
      return d.at.why_waiting;
  }
  return {};
}

bool has_room_for_more(const view& v, const plan& now, const job_entry& job) {
  const std::uint32_t islands = islands_of(job);
  if (islands >= limits::islands_max)
    return false;
  view next = v;
  ++next.number;
  next.previous = now.jobs;
  const auto at = std::ranges::find(next.jobs, job.id, &job_entry::id);
  if (at == next.jobs.end())
    return false;
  set_mark(*at, {mark_kind::scaled, 0, next.number, islands + 1});
  const plan then = make_plan(next);
  const auto runs_on = [&](const assignment& was) {
    const auto is = std::ranges::find(then.jobs, was.job, &assignment::job);
    for (std::size_t i = 0; i < was.islands.size(); ++i)
      if (is == then.jobs.end() || i >= is->islands.size()
          || is->islands[i].replicas != was.islands[i].replicas)
        return false;
    return true;
  };
  const auto is = std::ranges::find(then.jobs, job.id, &assignment::job);
  return is != then.jobs.end() && !is->islands.back().replicas.empty()
         && std::ranges::all_of(now.jobs, runs_on);
}

prediction predict(const view& v, job_id id, const island_place& a) {
  const job_entry* job = find_job(v, id);
  if (!job || a.replicas.empty())
    return {};
  std::vector<const member*> members;
  for (const member& m : v.members)
    members.push_back(&m);
  prediction out = predict_replicas(*job, members, a.replicas);
  for (const auto& [who, bytes] : copy_bytes(*job, a)) {
    auto at = std::ranges::find(out.members, who, &prediction::need::where);
    if (at == out.members.end())
      at = out.members.insert(at, {who, 0, 0});
    at->bytes += bytes;
  }
  return out;
}

nanoseconds longest_wait(const view& v, job_id id, const island_place& a) {
  const job_entry* job = find_job(v, id);
  if (!job)
    return 0;
  std::uint64_t slowest = assumed_bytes_per_s;
  for (const member& m : v.members)
    for (const network_profile& n : m.networks)
      if (n.bytes_per_s > 0)
        slowest = std::min(slowest, n.bytes_per_s);
  const std::uint64_t all =
    std::min(job->embed_state_bytes + job->head_state_bytes
               + saturating_mul(job->blocks, job->block_state_bytes),
             cost_never);
  const auto transfer =
    nanoseconds(std::min(muldiv(all, 1'000'000'000, slowest), cost_never));
  return std::max(predict(v, id, a).step, transfer);
}

bool undisturbed(const view& v, const island_place& a) {
  std::vector<peer_id> at_work;
  auto there = [&](const member_id& id) {
    const member* m = find_member(v, id.peer);
    at_work.push_back(id.peer);
    return m && m->id == id;
  };
  for (const replica_place& r : a.replicas)
    for (const stage_place& s : r.stages)
      for (const shard_place& shard : s.shards)
        if (!there(shard.where.member))
          return false;
  for (const holder_place& f : a.followers)
    if (!there(f.where.member))
      return false;
  return std::ranges::none_of(v.cuts, [&](const cut_pair& c) {
    return std::ranges::find(at_work, c.low.peer) != at_work.end()
           && std::ranges::find(at_work, c.high.peer) != at_work.end();
  });
}

} // namespace shoal::core
