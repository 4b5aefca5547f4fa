// runtime/core/planning/plan_reasons.cpp -- causes, from a view and its plan.
#include "runtime/core/planning/plan_reasons.hpp"

#include "runtime/core/planning/detours.hpp"
#include "runtime/core/planning/followers.hpp"
#include "runtime/core/planning/host_memory.hpp"
#include "runtime/core/planning/island_members.hpp"
#include "runtime/core/planning/layout/layout.hpp"
#include "runtime/core/planning/placement.hpp"
#include "runtime/core/planning/placer.hpp"
#include "runtime/core/schedule/schedule.hpp"
#include "runtime/core/state/holdings.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <set>

namespace shoal::core {
namespace {

std::string count(std::uint64_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

const assignment* previous_of(const view& v, job_id job) {
  const auto was = std::ranges::find(v.previous, job, &assignment::job);
  return was == v.previous.end() ? nullptr : &*was;
}

/// "only 2 peers compute", the reason for most unmet wishes.
/// @param shared the others are those of other islands
std::string able_text(std::size_t able, bool shared) {
  const std::string peers = "only " + count(able, "peer");
  if (shared)
    return peers + (able == 1 ? " is" : " are") + " left for it";
  return peers + (able == 1 ? " computes" : " compute");
}

class wishes {
public:
  /// @param shared there are other islands
  wishes(std::size_t able, bool shared, const job_entry& job,
         const island_place& a)
    : job_(job), a_(a), able_(able), shared_(shared) {
    for (const replica_place& r : a.replicas) {
      std::set<member_id> distinct;
      for (const stage_place& s : r.stages)
        for (const shard_place& shard : s.shards)
          distinct.insert(shard.where.member);
      stages_ = std::min(stages_, std::uint32_t(r.stages.size()));
      deepest_ = std::max(deepest_, std::uint32_t(r.stages.size()));
      const auto peers = std::uint32_t(distinct.size());
      alike_ = alike_ && (peers_of_one_ == ~0u || peers_of_one_ == peers);
      peers_of_one_ = std::min(peers_of_one_, peers);
    }
  }

  std::vector<unheld_wish> all() {
    replicas();
    stages();
    schedule();
    copies();
    keepers();
    return std::move(out_);
  }

private:
  void
  add(const char* key, std::string wanted, std::string got, std::string why) {
    out_.push_back({key, std::move(wanted), std::move(got), std::move(why)});
  }

  void replicas() {
    const std::uint32_t got = replica_count(a_.replicas);
    if (job_.want_replicas <= 0 || got >= std::uint32_t(job_.want_replicas))
      return;
    const auto wanted = std::uint32_t(job_.want_replicas);
    const std::uint64_t deep = stages_wanted();
    std::string why = "more do not fit in these peers' memory";
    if (wanted > job_.microbatches)
      why = "a step has " + std::to_string(job_.microbatches)
            + (job_.microbatches == 1 ? " microbatch" : " microbatches");
    else if (wanted * deep > able_)
      why = lacking_text();
    else if (!a_.arriving.empty())
      why = "their state is on its way";
    add("parallelism.data_parallel_replicate_degree", std::to_string(wanted),
        count(got, "replica"), why);
  }

  void stages() {
    if (job_.want_stages <= 0)
      return;
    const auto wanted = std::uint32_t(job_.want_stages);
    const char* const key = job_.kind == job_kind::serve
                              ? "serve.stages"
                              : "parallelism.pipeline_parallel_degree";
    // Schedules may cut a peer's stage into several runs (want_virtual).
    if (deepest_ < wanted) {
      add(key, std::to_string(wanted), count(deepest_, "stage"),
          "the model has " + count(job_.blocks, "layer"));
    } else if (peers_of_one_ < wanted) {
      add(key, std::to_string(wanted),
          std::string("all stages of ") + (alike_ ? "a " : "one ")
            + placer_of(job_.kind).replica + " on "
            + count(peers_of_one_, "peer"),
          lacks_peers(wanted) ? lacking_text()
          : !a_.arriving.empty()
            ? "their state is on its way"
            : "no other peers have the memory for a stage");
    }
  }

  /// Whether more members would spread the stages. Those of a served model are
  /// spread over all members that have room.
  bool lacks_peers(std::uint32_t wanted) const {
    if (job_.kind == job_kind::serve)
      return able_ <= peers_of_one_;
    return able_ < wanted * replicas_wanted();
  }

  /// What could be, with peers enough.
  std::uint64_t stages_wanted() const {
    return std::clamp<std::uint64_t>(std::max(1, job_.want_stages), 1,
                                     std::max(1u, job_.blocks));
  }
  std::uint64_t replicas_wanted() const {
    return std::clamp<std::uint64_t>(std::max(1, job_.want_replicas), 1,
                                     std::max(1u, job_.microbatches));
  }

  /// Why the wanted numbers cannot be: there are too few peers.
  std::string lacking_text() const {
    const std::uint64_t replicas = replicas_wanted(), stages = stages_wanted();
    const std::string only = able_text(able_, shared_);
    if (job_.kind == job_kind::serve || replicas == 1 || stages == 1)
      return only;
    return count(replicas, "replica") + " of " + count(stages, "stage")
           + " would need " + count(replicas * stages, "peer") + ", and "
           + only;
  }

  void schedule() {
    const schedule_kind wanted =
      job_.want_schedule.value_or(schedule_kind::one_f_one_b);
    if (wanted == schedule_kind::one_f_one_b || a_.schedule == wanted)
      return;
    const bool single = peers_of_one_ < 2;
    add("parallelism.pipeline_parallel_schedule", to_text(wanted),
        single ? "no pipeline" : to_text(a_.schedule),
        single ? "a replica has all layers on one peer"
               : "the peers' layers or memory are too few for it");
  }

  void copies() {
    const std::uint32_t got =
      holdings(a_).least_copies(part_table(job_.blocks)) - 1;
    if (got < job_.want_copies) {
      std::string why = "no other peer has the memory for it";
      if (!a_.arriving.empty())
        why = "more are being made";
      else if (able_ <= std::size_t{got} + 1)
        why = able_ == 1 ? "there is no other peer" : able_text(able_, shared_);
      add("fault_tolerance.copies", std::to_string(job_.want_copies),
          got == 0   ? "no copy in memory"
          : got == 1 ? "1 copy in memory"
                     : std::to_string(got) + " copies in memory",
          why);
    }
    if (job_.want_copy_every > 1 && !a_.followers.empty()
        && a_.copy_every != job_.want_copy_every)
      add("fault_tolerance.copy_every", std::to_string(job_.want_copy_every),
          "every step", "two copies of the state do not fit in memory");
  }

  void keepers() {
    const std::size_t wanted = job_.want_part_keepers;
    const std::size_t got = std::max(a_.part_keepers.size(), a_.keepers.size());
    if (got < wanted)
      add("checkpoint.keepers", std::to_string(wanted), count(got, "disk"),
          "there is no other peer");
  }

  const job_entry& job_;
  const island_place& a_;
  std::size_t able_; ///< members of the island that can work
  bool shared_;
  std::uint32_t stages_ = ~0u;       ///< fewest stages of a replica
  std::uint32_t deepest_ = 0;        ///< most stages of a replica
  std::uint32_t peers_of_one_ = ~0u; ///< of the replica with the fewest peers
  bool alike_ = true;                ///< all replicas have as many
  std::vector<unheld_wish> out_;
};

std::string name_in(const view& v, const member_id& id) {
  const member* m = find_member(v, id.peer);
  return m && !m->name.empty() ? m->name : short_name(id.peer);
}

/// Why a member that could work has no work.
class idleness {
public:
  idleness(const view& v, const job_entry& job, const assignment& a)
    : v_(v), job_(job), a_(a),
      islands_(members_by_island(v, job, previous_of(v, job.id))),
      memory_(memory_for_jobs(v, v.previous)) {
    for (const assignment& other : v.previous)
      if (const job_entry* o = find_job(v, other.job);
          o && other.job != a.job && o->state == job_state::running)
        for (const island_place& at : other.islands)
          for (const member_id& id : workers(at.replicas))
            elsewhere_.insert(id);
  }

  std::string why(const member& m) const {
    if (m.witness)
      return "only votes (--witness)";
    if (m.state == member_state::leaving)
      return "is leaving";
    if (m.state == member_state::joining)
      return "is joining";
    if (m.device.mflops == 0)
      return "has no measured speed";
    std::uint32_t i = 0;
    while (i < islands_.size()
           && std::ranges::find(islands_[i], &m) == islands_[i].end())
      ++i;
    if (i >= std::min(islands_.size(), a_.islands.size()))
      return "cannot reach all others";
    if (elsewhere_.contains(m.id))
      return "works for another job";
    return why(m, a_.islands[i], i);
  }

private:
  std::string
  why(const member& m, const island_place& at, std::uint32_t index) const {
    const auto at_work = workers(at.replicas);
    if (const std::string wish = wished(at, at_work, islands_[index].size());
        !wish.empty())
      return wish;
    const std::uint64_t least = job_.block_state_bytes + job_.activation_bytes;
    if (const auto at = memory_.find(m.id.peer);
        at == memory_.end() || at->second < least)
      return "has too little memory for a layer";
    if (const std::string with = sharing_with(m, at_work); !with.empty())
      return "shares its host's cores with " + with;
    const island_place* before = island_of(previous_of(v_, job_.id), index);
    return before && before->replicas == at.replicas
             ? "a layout with it would be less than "
                 + std::to_string(keep_percent) + " % faster"
             : "no layout with it is faster";
  }

  /// The reason if the run file asks for no more than there is now.
  std::string
  wished(const island_place& at, const std::vector<member_id>& at_work,
         std::size_t able) const {
    const std::uint64_t replicas = replica_count(at.replicas);
    const bool by_replicas =
      job_.want_replicas > 0 && replicas >= std::uint64_t(job_.want_replicas);
    const bool by_stages = job_.want_stages > 0;
    if (job_.kind == job_kind::serve && by_stages)
      return at_work.size() < wanted_stages(job_)
               ? "has too little memory left for a stage"
               : "the model is to have "
                   + count(std::uint64_t(job_.want_stages), "stage");
    if (by_replicas && by_stages)
      return "the run asks for " + count(replicas, "replica") + " of "
             + count(std::uint64_t(job_.want_stages), "stage");
    const std::size_t left = able - std::min(able, at_work.size());
    if (by_stages && stages_apart(job_, at.replicas)
        && left < wanted_stages(job_))
      return "another replica would need " + count(wanted_stages(job_), "peer")
             + " for its stages";
    if (by_replicas && job_.blocks == 1)
      return "the run asks for " + count(replicas, "replica") + " of 1 layer";
    if (replicas == job_.microbatches
        && at_work.size() == replicas * std::max(1u, job_.blocks))
      return "each layer of each microbatch has a peer already";
    return {};
  }

  std::string
  sharing_with(const member& m, const std::vector<member_id>& at_work) const {
    if (m.host.empty() || m.device.kind != "cpu" || m.device.host_threads == 0)
      return {};
    std::uint64_t threads = m.device.threads;
    std::string names;
    for (const member& other : v_.members)
      if (other.host == m.host
          && std::ranges::binary_search(at_work, other.id)) {
        threads += other.device.threads;
        names += (names.empty() ? "" : ", ") + name_in(v_, other.id);
      }
    return threads > m.device.host_threads ? names : std::string{};
  }

  const view& v_;
  const job_entry& job_;
  const assignment& a_;
  std::vector<member_list> islands_; ///< members that can work
  std::set<member_id> elsewhere_;
  memory_by_peer memory_;
};

} // namespace

/// Of a served model, whose pipelines are its islands.
static void add_unplaced(const assignment& a, std::vector<unheld_wish>& out) {
  const auto placed = std::ranges::count_if(
    a.islands, [](const island_place& at) { return !at.replicas.empty(); });
  for (const island_place& at : a.islands)
    if (at.replicas.empty()) {
      out.push_back({"serve.replicas", std::to_string(a.islands.size()),
                     count(std::uint64_t(placed), "pipeline"), at.why_waiting});
      return;
    }
}

std::vector<unheld_wish> unheld_wishes(const view& v, const assignment& a) {
  const job_entry* job = find_job(v, a.job);
  if (!job)
    return {};
  std::vector<unheld_wish> out;
  if (job->kind == job_kind::serve && !waits(a))
    add_unplaced(a, out);
  const auto islands = members_by_island(v, *job, previous_of(v, job->id));
  for (std::size_t i = 0; i < std::min(islands.size(), a.islands.size()); ++i)
    if (!a.islands[i].replicas.empty())
      for (unheld_wish& w :
           wishes(islands[i].size(), islands.size() > 1, *job, a.islands[i])
             .all())
        if (std::ranges::find(out, w) == out.end())
          out.push_back(std::move(w));
  return out;
}

std::string to_text(const unheld_wish& w) {
  const auto dot = w.key.find('.');
  return (dot == std::string::npos ? w.key : w.key.substr(dot + 1)) + " = "
         + w.wanted + ": " + w.got + ", as " + w.why;
}

std::vector<idle_member> idle_members(const view& v, const assignment& a) {
  const job_entry* job = find_job(v, a.job);
  if (!job || waits(a))
    return {};
  std::set<member_id> used;
  for (const island_place& at : a.islands) {
    for (const member_id& id : workers(at.replicas))
      used.insert(id);
    for (const auto* places : {&at.followers, &at.arriving})
      for (const holder_place& f : *places)
        used.insert(f.where.member);
  }
  std::optional<idleness> idle; // of many members each one may be in use
  std::vector<idle_member> out;
  for (const member& m : v.members)
    if (!used.contains(m.id)) {
      if (!idle)
        idle.emplace(v, *job, a);
      out.push_back({m.id, idle->why(m)});
    }
  return out;
}

std::string rare_copies_text(const job_entry& job, const island_place& a,
                             std::uint64_t checkpoint_every) {
  if (a.followers.empty() || a.copy_every <= 1 || job.want_copy_every > 0)
    return {};
  const std::uint64_t every = a.copy_every;
  const bool checkpoints = checkpoint_every > 0 && checkpoint_every < every;
  return "copies of the state are made every " + std::to_string(every)
         + " steps, as " + rare_copies_cause
         + ": the loss of one peer may cost up to "
         + std::to_string(checkpoints ? checkpoint_every : every) + " steps ("
         + (checkpoints ? "checkpoint.interval" : "fault_tolerance.copy_every")
         + ")";
}

std::optional<slow_network>
slow_network_of(const view& v, job_id job, const island_place& a) {
  const std::vector<member_id> at_work = workers(a.replicas);
  std::set<std::string> hosts;
  for (const member_id& id : at_work)
    if (const member* m = find_member(v, id.peer))
      hosts.insert(m->host);
  std::optional<slow_network> slowest;
  view fast = v;
  for (member& m : fast.members) {
    // The best of those that lead to another host, as plans count on it.
    const network_profile* best = nullptr;
    for (network_profile& n : m.networks)
      if ((n.name == "host") == (hosts.size() == 1)
          && (best == nullptr || best->bytes_per_s < n.bytes_per_s))
        best = &n;
    if (best != nullptr && std::ranges::binary_search(at_work, m.id)
        && best->bytes_per_s < assumed_bytes_per_s
        && (!slowest || best->bytes_per_s < slowest->network.bytes_per_s))
      slowest = {m.id, *best};
    for (network_profile& n : m.networks)
      n.bytes_per_s = std::max(n.bytes_per_s, assumed_bytes_per_s);
  }
  if (!slowest)
    return {};
  const auto with = std::uint64_t(predict(v, job, a).step);
  const auto without = std::uint64_t(predict(fast, job, a).step);
  if (without >= muldiv(with, slow_network_percent, 100))
    return {};
  return slowest;
}

std::string to_text(const view& v, const slow_network& slow) {
  const bool within = slow.network.name == "host"; // of one machine
  return (within
            ? "steps mostly wait for data between processes on the machine "
              "of "
            : "steps mostly wait for the network of ")
         + name_in(v, slow.where) + ", which carries "
         + rate_text(slow.network.bytes_per_s) + " ("
         + (within ? "" : slow.network.name + ", ")
         + "as measured there; see `shoal status --links`)";
}

std::map<member_id, memory_kinds>
memory_of(const job_entry& job, const island_place& a) {
  std::map<member_id, memory_kinds> out;
  for (const replica_place& r : a.replicas) {
    const auto stages = std::uint32_t(r.stages.size());
    const std::uint32_t microbatches = r.last_microbatch - r.first_microbatch;
    for (std::uint32_t s = 0; s < stages; ++s) {
      const stage_place& at = r.stages[s];
      const std::uint64_t live =
        at.kept_max > 0 ? std::min(at.kept_max, microbatches)
                        : live_microbatches_max(s, stages, microbatches);
      const std::uint64_t blocks = at.last_block - at.first_block;
      const std::uint64_t state =
        saturating_mul(blocks, job.block_state_bytes)
        + (s == 0 ? job.embed_state_bytes : 0)
        + (s + 1 == stages ? job.head_state_bytes : 0);
      memory_kinds& m = out[at.lead()];
      m.parameters += state / state_parts;
      m.gradients += state / state_parts;
      m.optimizer += state - 2 * (state / state_parts);
      m.activations += saturating_mul(blocks, job.activation_bytes * live);
    }
  }
  for (const auto& [who, bytes] : copy_bytes(job, a))
    out[who].copies += bytes;
  return out;
}

std::uint64_t step_flops(const job_entry& job) {
  return saturating_mul(job.microbatches,
                        saturating_mul(job.blocks, job.block_flops)
                          + job.head_flops);
}

std::uint64_t mflops_of(const view& v, const island_place& a) {
  struct host {
    std::uint64_t mflops = 0, threads = 0, cores = 0;
  };
  std::map<std::string, host> hosts;
  for (const member_id& id : workers(a.replicas)) {
    const member* m = find_member(v, id.peer);
    if (!m)
      continue;
    // Devices of their own share nothing; nor do members of an unknown host.
    const bool alone = m->host.empty() || m->device.kind != "cpu";
    host& h = hosts[alone ? "/" + to_hex(id.peer) : m->host];
    h.mflops = std::min(h.mflops + m->device.mflops, cost_never);
    h.threads += m->device.threads;
    if (!alone)
      h.cores = std::max<std::uint64_t>(h.cores, m->device.host_threads);
  }
  std::uint64_t sum = 0;
  for (const auto& [name, h] : hosts)
    sum += h.cores > 0 && h.threads > h.cores
             ? muldiv(h.mflops, h.cores, h.threads)
             : h.mflops;
  return sum;
}

} // namespace shoal::core
