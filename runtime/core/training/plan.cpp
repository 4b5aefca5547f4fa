// runtime/core/training/plan.cpp -- from a view to assignments.
#include "runtime/core/training/plan.hpp"

#include "runtime/core/training/layout.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace shoal::core {
namespace {

bool usable(const member& m, member_state state) {
  return m.state == state && !m.witness && m.device.mflops > 0;
}

/// Who gets work: active members, or, when all others are leaving too, those
/// that leave: somebody has to bring the jobs to their end.
member_state working_state(const view& v) {
  for (const member& m : v.members)
    if (usable(m, member_state::active))
      return member_state::active;
  return member_state::leaving;
}

const member* present(const view& v, const member_id& id) {
  const member* m = find_member(v, id.peer);
  return m && m->id == id ? m : nullptr;
}

std::vector<member_id> workers(const std::vector<replica_place>& replicas) {
  std::set<member_id> out;
  for (const replica_place& r : replicas)
    for (const stage_place& s : r.stages)
      out.insert(s.where);
  return {out.begin(), out.end()};
}

/// Whether `a` still is a layout of `job` on members that can work.
bool stands(const view& v, const job_entry& job, const assignment& a) {
  if (a.replicas.empty())
    return false;
  for (const member_id& id : workers(a.replicas)) {
    const member* m = present(v, id);
    if (!m || !usable(*m, working_state(v)))
      return false;
  }
  std::uint32_t next = 0;
  for (const replica_place& r : a.replicas) {
    if (r.stages.empty() || r.first_microbatch != next
        || r.last_microbatch <= next)
      return false;
    next = r.last_microbatch;
    std::uint32_t block = 0;
    for (const stage_place& s : r.stages) {
      if (s.first_block != block || s.last_block < block)
        return false;
      block = s.last_block;
    }
    if (block != job.blocks)
      return false;
  }
  return next == job.microbatches;
}

/// Whether `a` is nearer to what the job wants than `b`.
bool nearer(const job_entry& job, const std::vector<replica_place>& a,
            const std::vector<replica_place>& b) {
  bool wants_stages = job.want_stages > 0 || !job.want_blocks.empty();
  if (job.want_replicas > 0 && a.size() != b.size())
    return a.size() > b.size();
  // Stages that share a member do so for lack of members.
  return wants_stages && job.want_replicas > 0
         && workers(a).size() > workers(b).size();
}

layout choose_layout(const layout_problem& p, const view& v) {
  layout best = find_layout(p);
  if (!p.previous || !stands(v, p.job, *p.previous))
    return best;
  std::optional<layout_score> was = score(p, p.previous->replicas);
  if (!was)
    return best;
  if (working_state(v) == member_state::leaving)
    return {p.previous->replicas, *was}; // not worth a move
  bool much_faster = best.score.cost * 100 < was->cost * (100 - keep_percent);
  if (!best.replicas.empty()
      && (much_faster || nearer(p.job, best.replicas, p.previous->replicas)))
    return best;
  return {p.previous->replicas, *was};
}

std::string megabytes(std::uint64_t bytes) {
  return std::to_string((bytes + 999'999) / 1'000'000) + " MB";
}

std::string explain(const layout_problem& p) {
  if (p.members.empty())
    return "no member can work: all are witnesses, leaving or without a "
           "measured speed";
  if (p.job.microbatches == 0)
    return "the job has no microbatches";
  const job_entry& j = p.job;
  std::uint64_t need = j.embed_state_bytes + j.head_state_bytes
                       + j.blocks * (j.block_state_bytes + j.activation_bytes);
  std::uint64_t have = 0;
  std::uint64_t largest = 0;
  for (auto& [peer, bytes] : p.memory) {
    have += bytes;
    largest = std::max(largest, bytes);
  }
  return "not enough memory: one replica needs at least " + megabytes(need)
         + " (embedding " + megabytes(j.embed_state_bytes) + ", each of "
         + std::to_string(j.blocks) + " blocks "
         + megabytes(j.block_state_bytes + j.activation_bytes) + ", head "
         + megabytes(j.head_state_bytes) + "); "
         + std::to_string(p.members.size()) + " members have " + megabytes(have)
         + " left, the largest " + megabytes(largest);
}

/// Roles stay where they were while that member takes part.
void place_roles(assignment& a, const assignment* previous) {
  if (a.replicas.empty())
    return;
  std::vector<member_id> taking_part = workers(a.replicas);
  auto stay = [&](const member_id& was, const member_id& otherwise) {
    bool here = std::ranges::binary_search(taking_part, was);
    return previous && here ? was : otherwise;
  };
  const assignment none;
  const assignment& was = previous ? *previous : none;
  const member_id& first = a.replicas.front().stages.front().where;
  const member_id& last = a.replicas.front().stages.back().where;
  a.data_source = stay(was.data_source, first);
  a.checkpointer = stay(was.checkpointer, first);
  a.evaluator = stay(was.evaluator, last);
  a.reporter = stay(was.reporter, last);
}

void place_keepers(assignment& a, const view& v, const job_entry& job,
                   const assignment* previous) {
  const member_state state = working_state(v);
  auto add = [&](const member* m, bool any_kind) {
    if (!m || m->state != state || (m->witness && !any_kind)
        || a.keepers.size() >= keepers_wanted
        || std::ranges::find(a.keepers, m->id) != a.keepers.end())
      return;
    a.keepers.push_back(m->id);
  };
  if (previous)
    for (const member_id& id : previous->keepers)
      add(present(v, id), true);
  if (!previous || previous->keepers.empty())
    add(find_member(v, job.submitter), true); // it has them already
  if (!a.replicas.empty())
    for (const member_id& id :
         {a.data_source, a.checkpointer, a.evaluator, a.reporter})
      add(present(v, id), false);
  for (const member_id& id : workers(a.replicas))
    add(present(v, id), false);
  add(find_member(v, job.submitter), true);
  for (const member& m : v.members)
    add(&m, false);
  std::ranges::sort(a.keepers);
}

void place_sealers(assignment& a, const view& v, const assignment* previous) {
  std::set<member_id> all(a.keepers.begin(), a.keepers.end());
  for (const member_id& id : workers(a.replicas))
    all.insert(id);
  if (previous) {
    auto keep = [&](const std::vector<member_id>& ids) {
      for (const member_id& id : ids)
        if (present(v, id))
          all.insert(id);
    };
    keep(previous->sealers);
    keep(workers(previous->replicas));
    keep(previous->keepers);
  }
  a.sealers.assign(all.begin(), all.end());
}

/// The running jobs in the order in which they take memory: a job of higher
/// priority also from one that runs, else who came first keeps it.
std::vector<const job_entry*> by_priority(const view& v) {
  std::vector<const job_entry*> out;
  for (const job_entry& job : v.jobs)
    if (job.state == job_state::running)
      out.push_back(&job);
  std::ranges::sort(out, {}, [](const job_entry* j) {
    return std::tuple(-j->priority, j->changed, j->id);
  });
  return out;
}

class hash {
public:
  void add(std::uint64_t x) {
    for (int i = 0; i < 8; ++i)
      byte(static_cast<std::uint8_t>(x >> (8 * i)));
  }
  void add(const member_id& m) {
    for (std::uint8_t b : m.peer)
      byte(b);
    add(m.incarnation);
  }
  void add(const std::string& s) {
    add(s.size());
    for (char c : s)
      byte(static_cast<std::uint8_t>(c));
  }
  std::uint64_t result() const { // splitmix64's finaliser
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return z == 0 ? 1 : z; // 0 means none
  }

private:
  void byte(std::uint8_t b) { state_ = (state_ ^ b) * 0x100000001b3u; }
  std::uint64_t state_ = 0xcbf29ce484222325u; // FNV-1a
};

} // namespace

plan make_plan(const view& v) {
  plan out;
  out.number = v.number;
  std::map<peer_id, std::uint64_t> memory;
  const member_state state = working_state(v);
  for (const member& m : v.members)
    if (usable(m, state))
      memory[m.id.peer] = m.device.memory_bytes;
  for (const job_entry* one : by_priority(v)) {
    const job_entry& job = *one;
    auto was = std::ranges::find(v.previous, job.id, &assignment::job);
    const assignment* previous = was == v.previous.end() ? nullptr : &*was;
    layout_problem p{job, {}, memory, previous};
    for (const member& m : v.members)
      if (usable(m, state))
        p.members.push_back(&m);

    assignment a;
    a.job = job.id;
    a.replicas = choose_layout(p, v).replicas;
    if (a.replicas.empty())
      a.why_waiting = explain(p);
    place_roles(a, previous);
    place_keepers(a, v, job, previous);
    place_sealers(a, v, previous);
    a.since = previous ? previous->since : v.number;
    if (!previous || a != *previous)
      a.since = v.number;
    for (const auto& need :
         predict_replicas(job, p.members, a.replicas).memory) {
      std::uint64_t& left = memory[need.where.peer];
      left -= std::min(left, need.bytes);
    }
    out.jobs.push_back(std::move(a));
  }
  std::ranges::sort(out.jobs, {}, &assignment::job);
  return out;
}

std::uint64_t digest(const assignment& a) {
  hash h;
  h.add(a.job);
  h.add(a.since);
  h.add(a.replicas.size());
  for (const replica_place& r : a.replicas) {
    h.add(r.stages.size());
    for (const stage_place& s : r.stages) {
      h.add(s.where);
      h.add(s.first_block);
      h.add(s.last_block);
    }
    h.add(r.first_microbatch);
    h.add(r.last_microbatch);
  }
  h.add(a.keepers.size());
  for (const member_id& m : a.keepers)
    h.add(m);
  h.add(a.sealers.size());
  for (const member_id& m : a.sealers)
    h.add(m);
  for (const member_id* m :
       {&a.data_source, &a.evaluator, &a.checkpointer, &a.reporter})
    h.add(*m);
  h.add(a.why_waiting);
  return h.result();
}

std::string to_text(const view& v, const assignment& a) {
  if (a.replicas.empty())
    return "waits: " + a.why_waiting;
  std::string out;
  for (std::size_t r = 0; r < a.replicas.size(); ++r) {
    out += (r ? "; " : "") + std::string("replica ") + std::to_string(r) + ":";
    for (const stage_place& s : a.replicas[r].stages) {
      const member* m = find_member(v, s.where.peer);
      out += " ";
      out += m && !m->name.empty() ? m->name : short_name(s.where.peer);
      out += "[" + std::to_string(s.first_block) + ","
             + std::to_string(s.last_block) + ")";
    }
  }
  return out;
}

const char* to_text(job_state s) {
  switch (s) {
  case job_state::running:
    return "running";
  case job_state::done:
    return "done";
  case job_state::cancelled:
    return "cancelled";
  case job_state::failed:
    return "failed";
  }
  return "unknown";
}

prediction predict(const view& v, const assignment& a) {
  const job_entry* job = find_job(v, a.job);
  if (!job || a.replicas.empty())
    return {};
  std::vector<const member*> members;
  for (const member& m : v.members)
    members.push_back(&m);
  return predict_replicas(*job, members, a.replicas);
}

} // namespace shoal::core
