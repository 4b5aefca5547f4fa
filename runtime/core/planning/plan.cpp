// runtime/core/planning/plan.cpp -- from a view to assignments.
#include "runtime/core/planning/plan.hpp"

#include "runtime/core/planning/arrivals.hpp"
#include "runtime/core/planning/detours.hpp"
#include "runtime/core/planning/followers.hpp"
#include "runtime/core/planning/host_memory.hpp"
#include "runtime/core/planning/layout.hpp"
#include "runtime/core/planning/placement.hpp"
#include "runtime/core/schedule/schedule_choice.hpp"

#include <algorithm>
#include <tuple>

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

/// "41.2 GiB"; rounded up, so that a need is never understated.
std::string amount(std::uint64_t bytes) {
  constexpr std::uint64_t mib = 1u << 20, gib = 1u << 30;
  const std::uint64_t unit = bytes >= gib ? gib : mib;
  const std::uint64_t tenths =
    bytes / unit * 10 + (bytes % unit * 10 + unit - 1) / unit;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10)
         + (unit == gib ? " GiB" : " MiB");
}

std::uint64_t sum_of(const std::map<peer_id, std::uint64_t>& memory,
                     const std::vector<const member*>& members) {
  std::uint64_t sum = 0;
  for (const member* m : members)
    if (auto at = memory.find(m->id.peer); at != memory.end())
      sum = std::min(sum + at->second, cost_never);
  return sum;
}

std::string explain(const layout_problem& p) {
  if (p.members.empty())
    return "no member can work: all are witnesses, leaving or without a "
           "measured speed";
  if (p.job.microbatches == 0)
    return "the job has no microbatches";
  const job_entry& j = p.job;
  const std::uint64_t block = j.block_state_bytes + j.activation_bytes;
  const std::uint64_t need = std::min(j.embed_state_bytes + j.head_state_bytes
                                        + saturating_mul(j.blocks, block),
                                      cost_never);
  const std::uint64_t have = sum_of(p.memory, p.members);
  const std::uint64_t all = sum_of(p.all_memory, p.members);
  std::uint64_t largest = 0;
  for (const member* m : p.members)
    if (auto at = p.memory.find(m->id.peer); at != p.memory.end())
      largest = std::max(largest, at->second);
  std::string out =
    "not enough memory: needs at least " + amount(need) + " (embedding "
    + amount(j.embed_state_bytes) + ", " + std::to_string(j.blocks)
    + " blocks of " + amount(block) + ", head " + amount(j.head_state_bytes)
    + "), has " + amount(have) + " on " + std::to_string(p.members.size())
    + (p.members.size() == 1 ? " member" : " members, at most ")
    + (p.members.size() == 1 ? "" : amount(largest) + " on one");
  if (std::ranges::any_of(p.members, [&](const member* m) {
        const auto at = p.all_memory.find(m->id.peer);
        return at != p.all_memory.end() && at->second < m->device.memory_bytes;
      }))
    out += "; peers of one host share its memory";
  if (all > have)
    out += "; " + amount(all - have)
           + " are taken by other jobs, which "
             "are older or of higher priority";
  if (need <= have)
    out += "; the parts do not fit whole, with what the pipeline keeps of its "
           "microbatches";
  return out;
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
void place_schedule(assignment& a, const layout_problem& p) {
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
void put_off_weights(assignment& a, const layout_problem& p) {
  if (!makes_detour(a.replicas)
      || (p.previous && p.previous->replicas == a.replicas))
    return;
  job_entry deferring = p.job;
  deferring.want_schedule = schedule_kind::zero_bubble;
  deferring.want_virtual = 1; // the stages are already cut
  assignment out = a;
  set_schedule(out, deferring, speeds(a.replicas, p), p.memory, assumed_hop);
  if (out.schedule == schedule_kind::zero_bubble && fits_memory(out, p))
    a = std::move(out);
}

/// The memory that each device has left for jobs later in the order.
class ledger {
public:
  /// @param placed where jobs already run
  ledger(const view& v, const std::vector<assignment>& placed)
    : memory_(memory_for_jobs(v, placed)), all_(memory_) {}

  layout_problem problem(const view& v, const job_entry& job,
                         const assignment* previous) const {
    layout_problem p{job, {}, memory_, previous, busy_, all_};
    p.members = able_members(v, previous);
    return p;
  }

  void take_layout(const layout_problem& p, const assignment& a) {
    for (const auto& need :
         predict_replicas(p.job, p.members, a.replicas).members) {
      std::uint64_t& left = memory_[need.where.peer];
      left -= std::min(left, need.bytes);
      ++busy_[need.where.peer];
    }
  }

  /// Sets p.memory to the amount that all layouts leave, plus that of `a`
  /// itself.
  void leave_only_rest(layout_problem& p, const assignment& a) const {
    p.memory = memory_;
    for (const auto& need :
         predict_replicas(p.job, p.members, a.replicas).members)
      p.memory[need.where.peer] += need.bytes;
  }

  /// After leave_only_rest: takes the memory of what runs, if that is not the
  /// layout taken before, and of its copies.
  void take_copies(const layout_problem& p, const assignment& a) {
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
  std::map<peer_id, std::uint32_t> busy_;
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

} // namespace

plan make_plan(const view& v) {
  plan out;
  out.number = v.number;
  ledger books(v, v.previous);
  struct planned {
    layout_problem p;
    assignment a;
    bool kept; ///< state goes on arriving
  };
  std::vector<planned> all;
  for (const job_entry* job : in_order(v)) {
    auto was = std::ranges::find(v.previous, job->id, &assignment::job);
    // The previous assignment comes from the view and need not be sound: it is
    // ignored if it is not.
    const assignment* previous =
      was == v.previous.end() || !is_sound(*job, *was) ? nullptr : &*was;
    auto& [p, a, kept] =
      all.emplace_back(planned{books.problem(v, *job, previous), {}, false});
    a.job = job->id;
    kept = keeps_arriving(p);
    a.replicas = kept ? previous->replicas : choose_layout(p, v).replicas;
    if (a.replicas.empty())
      a.why_waiting = explain(p);
    place_schedule(a, p);
    books.take_layout(p, a);
  }
  // Copies are placed where no job's layout needs the memory.
  for (auto& [p, a, kept] : all) {
    const job_entry* job = &p.job;
    const assignment* previous = p.previous;
    books.leave_only_rest(p, a);
    if (kept && fits_memory(*previous, p)) {
      a.followers = previous->followers;
      a.copy_every = previous->copy_every;
      a.arriving = previous->arriving;
    } else {
      place_followers(a, p);
      let_arrive(a, p);
      put_off_weights(a, p);
    }
    place_roles(a, v, job->submitter, previous);
    place_keepers(a, v, p, previous);
    place_sealers(a, v, p, previous);
    a.since = previous ? previous->since : v.number;
    if (!previous || a != *previous || job->retried == previous->since)
      a.since = v.number;
    books.take_copies(p, a);
    out.jobs.push_back(std::move(a));
  }
  std::ranges::sort(out.jobs, {}, &assignment::job);
  return out;
}

std::string never_fits(const view& v, const job_entry& job) {
  const layout_problem p = ledger(v, {}).problem(v, job, nullptr);
  if (p.members.empty() || !find_layout(p).replicas.empty())
    return {}; // members that can work may still join
  return explain(p);
}

prediction predict(const view& v, const assignment& a) {
  const job_entry* job = find_job(v, a.job);
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

nanoseconds longest_wait(const view& v, const assignment& a) {
  const job_entry* job = find_job(v, a.job);
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
  return std::max(predict(v, a).step, transfer);
}

bool undisturbed(const view& v, const assignment& a) {
  std::vector<peer_id> at_work;
  auto there = [&](const member_id& id) {
    const member* m = find_member(v, id.peer);
    at_work.push_back(id.peer);
    return m && m->id == id;
  };
  for (const replica_place& r : a.replicas)
    for (const stage_place& s : r.stages)
      if (!there(s.where))
        return false;
  for (const follower_place& f : a.followers)
    if (!there(f.where))
      return false;
  return std::ranges::none_of(v.cuts, [&](const cut_pair& c) {
    return std::ranges::find(at_work, c.low.peer) != at_work.end()
           && std::ranges::find(at_work, c.high.peer) != at_work.end();
  });
}

} // namespace shoal::core
