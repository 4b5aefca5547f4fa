// runtime/core/planning/layout/cost.cpp -- speeds, links and memory of a layout.
#include "runtime/core/planning/layout/cost.hpp"

#include "runtime/core/job_entry.hpp"
#include "runtime/core/schedule/schedule.hpp"
#include "runtime/core/state/holdings.hpp"
#include "runtime/core/state/parts.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <numeric>

namespace shoal::core {
namespace {

/// Passes over a quarter of the state: the optimizer reads parameters,
/// gradients and two moments and writes all but the gradients; gradients are
/// also cleared and squared: 9 passes over a quarter each.
constexpr std::uint64_t apply_passes = 9;
constexpr std::size_t networks_known_max = 64;

} // namespace

namespace {

/// What the models that are served on a member reserve of it.
std::uint64_t reserved_percent(std::uint64_t pipelines) {
  return std::min(saturating_mul(pipelines, served_share_percent),
                  served_shares_percent_max);
}

} // namespace

speed_share share_of(job_kind kind, const other_work& others) {
  if (kind != job_kind::serve)
    return {100 - reserved_percent(others.serving),
            1 + std::uint64_t{others.training}};
  const std::uint64_t served = 1 + std::uint64_t{others.serving};
  return {others.training == 0 ? 100 : reserved_percent(served), served};
}

bool has_arrived(const layout_problem& p) {
  return !p.previous->arriving.empty()
         && marked(p.job, mark_kind::arrived, p.island) == p.previous->since;
}

bool is_retried(const layout_problem& p) {
  return marked(p.job, mark_kind::retried, p.island) == p.previous->since;
}

std::uint64_t cost_model::pipeline_time::of(std::uint64_t microbatches) const {
  return saturating_add(fill, saturating_mul(microbatches - 1, bottleneck));
}

cost_model::cost_model(const layout_problem& p) : job_(&p.job) {
  fragile_matters_ = p.job.want_replicas < 0 || p.job.want_replicas > 1;
  for (const member* m : p.members) {
    entry e;
    e.id = m->id;
    auto left = p.memory.find(m->id.peer);
    e.memory = left == p.memory.end() ? 0 : left->second;
    if (auto busy = p.busy.find(m->id.peer); busy != p.busy.end())
      e.others = busy->second;
    const speed_share share = share_of(p.job.kind, e.others);
    const auto part = [&](std::uint64_t speed) {
      return muldiv(speed, share.percent, 100) / share.among;
    };
    const device_profile& d = m->device;
    e.speed = std::max<std::uint64_t>(1, part(d.mflops));
    const std::uint64_t stream = part(d.stream_mbps);
    auto streaming = [&](std::uint64_t bytes) {
      return stream == 0 ? 0 : muldiv(bytes, 1000, stream);
    };
    e.alone.block = saturating_add(muldiv(p.job.block_flops, 1000, e.speed),
                                   streaming(p.job.block_traffic_bytes));
    e.alone.head = saturating_add(muldiv(p.job.head_flops, 1000, e.speed),
                                  streaming(p.job.head_traffic_bytes));
    e.alone.block = std::min(e.alone.block, pace_max);
    e.alone.head = std::min(e.alone.head, pace_max);
    e.apply = stream == 0 ? 0 : apply_passes * 1'000'000 / state_parts / stream;
    members_.push_back(std::move(e));
  }
  add_hosts(p);
  add_networks(p);
  if (p.previous && !p.previous->replicas.empty())
    add_held(p);
  set_paces(std::vector<std::uint8_t>(size(), 0));
}

void cost_model::add_hosts(const layout_problem& p) {
  std::map<std::string, std::uint32_t> known;
  for (index i = 0; i < size(); ++i) {
    const member& m = *p.members[i];
    if (!m.host.empty()) {
      auto [at, fresh] = known.try_emplace(m.host, hosts_.size());
      members_[i].host = at->second;
      if (!fresh)
        continue;
    } else {
      members_[i].host = std::uint32_t(hosts_.size());
    }
    hosts_.emplace_back().named = !m.host.empty();
  }
  std::vector<std::vector<index>> on(hosts_.size());
  for (index i = 0; i < size(); ++i)
    if (p.members[i]->device.kind == "cpu")
      on[host(i)].push_back(i);
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    host_entry& entry = hosts_[h];
    // If the number of cores is unknown, each member may use all of them.
    std::uint64_t cores = 0, threads = 0;
    bool known_cores = true;
    for (index i : on[h]) {
      const device_profile& d = p.members[i]->device;
      cores = std::max<std::uint64_t>(cores, d.host_threads);
      threads += d.threads;
      known_cores = known_cores && d.host_threads > 0 && d.threads > 0;
    }
    const std::uint64_t capacity = known_cores && cores > 0 ? cores : 1;
    entry.capacity = 100 * capacity;
    for (index i : on[h]) {
      const std::uint64_t weight =
        known_cores ? p.members[i]->device.threads : 1;
      const other_work& others = members_[i].others;
      members_[i].weight = 100 * weight;
      members_[i].taken =
        weight * (others.training > 0 ? 100 : reserved_percent(others.serving));
      entry.taken += members_[i].taken;
    }
    entry.shared =
      on[h].size() > 1 && (known_cores ? threads : on[h].size()) > capacity;
  }
}

void cost_model::add_networks(const layout_problem& p) {
  std::map<std::string, std::size_t> known;
  auto link_of = [](const network_profile& n) {
    return link{std::uint64_t(std::max<nanoseconds>(0, n.latency)),
                std::max<std::uint64_t>(1, n.bytes_per_s)};
  };
  within_.assign(size(), {assumed_host_hop, assumed_host_bytes_per_s});
  for (index i = 0; i < size(); ++i)
    for (const network_profile& n : p.members[i]->networks) {
      if (n.name == "host") {
        within_[i] = link_of(n);
        continue;
      }
      auto at = known.find(n.name);
      if (at == known.end()) {
        if (known.size() == networks_known_max)
          continue;
        at = known.emplace(n.name, known.size()).first;
        networks_.emplace_back(size());
      }
      networks_[at->second][i] = link_of(n);
      members_[i].networks |= std::uint64_t{1} << at->second;
    }
}

void cost_model::add_held(const layout_problem& p) {
  has_previous_ = true;
  const holdings before(*p.previous);
  for (entry& e : members_) {
    const member_parts& had = before.of(e.id);
    e.held = had.held;
    if (has_arrived(p))
      e.held.add(had.arrives);
    e.held_and_soon = e.held;
    e.held_and_soon.add(had.arrives);
  }
}

void cost_model::set_paces(std::span<const std::uint8_t> used) {
  paces_.resize(size());
  std::vector<std::uint64_t> demand(hosts_.size());
  for (std::size_t h = 0; h < hosts_.size(); ++h)
    demand[h] = hosts_[h].taken;
  for (index i = 0; i < size(); ++i)
    if (used[i])
      demand[host(i)] += members_[i].weight - members_[i].taken;
  for (index i = 0; i < size(); ++i) {
    paces_[i] = members_[i].alone;
    const std::uint64_t capacity = hosts_[host(i)].capacity;
    if (members_[i].weight == 0 || demand[host(i)] <= capacity)
      continue;
    for (std::uint64_t* ns : {&paces_[i].block, &paces_[i].head})
      *ns = std::min(muldiv(*ns, demand[host(i)], capacity), pace_max);
  }
}

void cost_model::use(std::span<const replica> replicas) {
  std::vector<std::uint8_t> used(size(), 0);
  for (const replica& r : replicas)
    for (const stage& s : r.stages)
      used[s.who] = 1;
  set_paces(used);
}

void cost_model::use(std::span<const std::vector<index>> groups) {
  std::vector<std::uint8_t> used(size(), 0);
  for (const auto& g : groups)
    for (index i : g)
      used[i] = 1;
  set_paces(used);
}

cost_model::link cost_model::between(std::span<const index> set) const {
  link best{0, cost_never};
  if (set.size() < 2)
    return best;
  bool one_host = hosts_[host(set[0])].named;
  std::uint64_t common = members_[set[0]].networks;
  for (index i : set) {
    one_host = one_host && host(i) == host(set[0]);
    common &= members_[i].networks;
  }
  auto worst = [&](const std::vector<link>& at) {
    link w{0, cost_never};
    for (index i : set) {
      w.latency = std::max(w.latency, at[i].latency);
      w.bytes_per_s = std::min(w.bytes_per_s, at[i].bytes_per_s);
    }
    return w;
  };
  if (one_host)
    return worst(within_);
  if (common == 0)
    return {std::uint64_t(assumed_hop), assumed_bytes_per_s};
  best.bytes_per_s = 0;
  for (std::size_t n = 0; n < networks_.size(); ++n)
    if (common >> n & 1)
      if (link w = worst(networks_[n]); w.bytes_per_s > best.bytes_per_s)
        best = w;
  return best;
}

cost_model::link cost_model::between(index a, index b) const {
  const index both[] = {a, b};
  return between(both);
}

cost_model::pipeline_time cost_model::time_of(const replica& r) const {
  pipeline_time t;
  std::uint64_t busy = 0;
  for (std::size_t s = 0; s < r.stages.size(); ++s) {
    const stage& at = r.stages[s];
    const std::uint64_t ns =
      saturating_add(saturating_mul(paces_[at.who].block, at.last - at.first),
                     s + 1 == r.stages.size() ? paces_[at.who].head : 0);
    t.fill = saturating_add(t.fill, ns);
    const bool same = s > 0 && r.stages[s - 1].who == at.who;
    busy = same ? saturating_add(busy, ns) : ns;
    t.bottleneck = std::max(t.bottleneck, busy);
    if (s == 0 || same)
      continue;
    const link l = between(r.stages[s - 1].who, at.who);
    const std::uint64_t transfer =
      muldiv(job_->boundary_bytes, 1'000'000'000, l.bytes_per_s);
    const std::uint64_t ways = job_->kind == job_kind::serve ? 1 : 2;
    t.fill = saturating_add(t.fill, ways * saturating_add(l.latency, transfer));
    t.bottleneck = std::max(t.bottleneck, transfer);
  }
  return t;
}

std::uint64_t
cost_model::stage_bytes(std::uint32_t blocks, std::uint32_t stage,
                        std::uint32_t stages, std::uint32_t microbatches,
                        std::uint32_t kept) const {
  const std::uint64_t live =
    kept > 0 ? std::min(kept, microbatches)
             : live_microbatches_max(stage, stages, microbatches);
  return saturating_mul(blocks,
                        job_->block_state_bytes + job_->activation_bytes * live)
         + (stage == 0 ? job_->embed_state_bytes : 0)
         + (stage + 1 == stages ? job_->head_state_bytes : 0);
}

std::uint64_t
cost_model::reduction_ns(std::span<const replica> replicas) const {
  const std::uint64_t n = replicas.size();
  if (n < 2)
    return 0;
  const bool shared = shares(replicas);
  // All replicas side by side, from one end of a stage to the next.
  std::vector<std::size_t> at(n, 0);
  std::vector<index> holders(n), distinct;
  std::vector<std::uint64_t> took(size(), 0);
  std::uint64_t latency = 0, slowest = 0;
  for (std::uint32_t block = 0, first = 1;; first = 0) {
    std::uint32_t next = job_->blocks;
    bool last = true;
    for (std::size_t r = 0; r < n; ++r) {
      const auto& stages = replicas[r].stages;
      while (at[r] + 1 < stages.size() && stages[at[r]].last <= block)
        ++at[r];
      holders[r] = stages[at[r]].who;
      next = std::min(next, stages[at[r]].last);
      last = last && at[r] + 1 == stages.size();
    }
    last = last && next >= job_->blocks;
    const std::uint64_t state =
      std::uint64_t(next - std::min(next, block)) * job_->block_state_bytes
      + (first ? job_->embed_state_bytes : 0)
      + (last ? job_->head_state_bytes : 0);
    std::vector<index>& sum_up = shared ? distinct : holders;
    if (shared) {
      distinct = holders;
      std::ranges::sort(distinct);
      distinct.erase(std::unique(distinct.begin(), distinct.end()),
                     distinct.end());
    }
    const std::uint64_t parts = sum_up.size();
    const link l = between(sum_up);
    const std::uint64_t ns =
      muldiv(muldiv(state / state_parts * 2, parts - 1, parts), 1'000'000'000,
             l.bytes_per_s);
    latency = std::max(latency, l.latency);
    for (index i : sum_up)
      slowest = std::max(slowest, took[i] = saturating_add(took[i], ns));
    if (last || next <= block)
      break;
    block = next;
  }
  return saturating_add(slowest, 2 * latency);
}

std::uint64_t
cost_model::busy(std::span<const replica> replicas, index who) const {
  std::uint64_t sum = 0;
  for (const replica& r : replicas)
    for (const stage& s : r.stages) {
      if (s.who != who)
        continue;
      const pace at = pace_of(who);
      const std::uint64_t once =
        saturating_add(saturating_mul(at.block, s.last - s.first),
                       &s == &r.stages.back() ? at.head : 0);
      sum = saturating_add(sum, saturating_mul(once, r.microbatches));
    }
  return sum;
}

std::uint64_t
cost_model::optimizer_ns(std::span<const replica> replicas) const {
  std::uint64_t slowest = 0;
  if (job_->kind == job_kind::serve)
    return slowest;
  for (const replica& r : replicas) {
    std::uint64_t state = 0;
    for (std::size_t s = 0; s < r.stages.size(); ++s) {
      const stage& at = r.stages[s];
      if (s > 0 && r.stages[s - 1].who != at.who)
        state = 0;
      state += (at.last - at.first) * job_->block_state_bytes
               + (s == 0 ? job_->embed_state_bytes : 0)
               + (s + 1 == r.stages.size() ? job_->head_state_bytes : 0);
      slowest = std::max(slowest, muldiv(state, members_[at.who].apply, 1000));
    }
  }
  return slowest;
}

part_range cost_model::parts_of(const replica& r, const stage& s) {
  return parts_of_stage({{}, s.first, s.last}, &s == &r.stages.front(),
                        &s == &r.stages.back());
}

std::uint64_t
cost_model::lacks(const part_set& has, const part_range& parts) const {
  std::uint64_t bytes = state_bytes(*job_, parts);
  for (const part_range& run : has.runs())
    bytes -= state_bytes(*job_, common(run, parts));
  return bytes;
}

/// How much of the arriving state is there is unknown: half of it counts.
std::uint64_t cost_model::moved_bytes(std::span<const replica> replicas) const {
  if (!has_previous_)
    return 0;
  std::uint64_t moved = 0;
  for (const replica& r : replicas)
    for (const stage& s : r.stages) {
      const entry& e = members_[s.who];
      const part_range parts = parts_of(r, s);
      const std::uint64_t most = lacks(e.held, parts);
      const std::uint64_t least = lacks(e.held_and_soon, parts);
      moved += least + (most - least) / 2;
    }
  return moved;
}

cost_model::evaluation cost_model::evaluate(std::span<const replica> replicas) {
  use(replicas);
  evaluation e;
  e.bytes.assign(size(), 0);
  for (const replica& r : replicas) {
    if (r.microbatches == 0 || r.stages.empty())
      return e;
    e.pipelines = std::max(e.pipelines, time_of(r).of(r.microbatches));
    const auto stages = std::uint32_t(r.stages.size());
    for (std::uint32_t s = 0; s < stages; ++s)
      e.bytes[r.stages[s].who] +=
        stage_bytes(r.stages[s].last - r.stages[s].first, s, stages,
                    r.microbatches, r.stages[s].kept);
  }
  if (shares(replicas))
    correct_shared(e, replicas);
  e.reduction = reduction_ns(replicas);
  e.optimizer = optimizer_ns(replicas);
  e.step =
    saturating_add(saturating_add(e.pipelines, e.reduction), e.optimizer);
  return e;
}

bool cost_model::shares(std::span<const replica> replicas) const {
  if (replicas.size() < 2)
    return false;
  std::vector<std::uint32_t> in(size(), 0); // + 1
  for (std::uint32_t r = 0; r < replicas.size(); ++r)
    for (const stage& s : replicas[r].stages) {
      if (in[s.who] != 0 && in[s.who] != r + 1)
        return true;
      in[s.who] = r + 1;
    }
  return false;
}

/// Members that work for several replicas hold their state once. They do the
/// work of all of these replicas between the events for which the first and the
/// last microbatch wait.
void cost_model::correct_shared(evaluation& e,
                                std::span<const replica> replicas) const {
  std::vector<part_set> parts(size());
  for (const replica& r : replicas) {
    const std::uint64_t fill = time_of(r).fill;
    for (const stage& s : r.stages) {
      const bool last = &s == &r.stages.back();
      const pace at = pace_of(s.who);
      const std::uint64_t once =
        saturating_mul(at.block, s.last - s.first) + (last ? at.head : 0);
      e.pipelines =
        std::max(e.pipelines, saturating_add(fill - std::min(fill, once),
                                             busy(replicas, s.who)));
      const part_range here = parts_of(r, s);
      for (const part_range& had : parts[s.who].runs())
        e.bytes[s.who] -= state_bytes(*job_, common(had, here));
      parts[s.who].add(here);
    }
  }
}

bool cost_model::fits(const evaluation& e) const {
  for (index i = 0; i < e.bytes.size(); ++i)
    if (e.bytes[i] > memory(i))
      return false;
  return !e.bytes.empty();
}

layout_score cost_model::charge(std::uint64_t step,
                                std::span<const replica> replicas) const {
  layout_score s;
  s.moved_bytes = moved_bytes(replicas);
  std::vector<std::uint8_t> used(size(), 0);
  for (const replica& r : replicas)
    for (const stage& at : r.stages)
      used[at.who] = 1;
  s.unused_members = std::uint64_t(std::ranges::count(used, std::uint8_t{0}));
  s.cost = saturating_add(
    step,
    muldiv(s.moved_bytes, 1'000'000'000, assumed_bytes_per_s) / repay_steps);
  if (replicas.size() == 1 && fragile_matters_ && size() > 1)
    s.cost = muldiv(s.cost, 100 + fragile_percent, 100);
  return s;
}

std::optional<std::vector<cost_model::replica>>
cost_model::indexed(const std::vector<replica_place>& places) const {
  std::vector<replica> out;
  for (const replica_place& r : places) {
    replica& to = out.emplace_back();
    to.microbatches = r.last_microbatch - r.first_microbatch;
    for (const stage_place& s : r.stages) {
      auto at = std::ranges::lower_bound(members_, s.lead(), {}, &entry::id);
      if (at == members_.end() || at->id != s.lead())
        return std::nullopt;
      to.stages.push_back({index(at - members_.begin()), s.first_block,
                           s.last_block, s.kept_max});
    }
  }
  return out;
}

std::vector<replica_place>
cost_model::placed(std::span<const replica> replicas) const {
  std::vector<replica_place> out;
  std::uint32_t next = 0;
  for (const replica& r : replicas) {
    replica_place& to = out.emplace_back();
    for (const stage& s : r.stages) {
      stage_place& place = to.stages.emplace_back();
      place.shards = {{members_[s.who].id}};
      place.first_block = s.first;
      place.last_block = s.last;
    }
    to.first_microbatch = next;
    next += r.microbatches;
    to.last_microbatch = next;
  }
  return out;
}

std::optional<layout_score>
score(const layout_problem& p, const std::vector<replica_place>& replicas) {
  cost_model model(p);
  const auto r = model.indexed(replicas);
  if (!r)
    return std::nullopt;
  const auto e = model.evaluate(*r);
  if (!model.fits(e))
    return std::nullopt;
  return model.charge(e.step, *r);
}

} // namespace shoal::core
