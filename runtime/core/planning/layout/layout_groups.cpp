// runtime/core/planning/layout/layout_groups.cpp -- initial groupings for the search.
#include "runtime/core/planning/layout/layout_search.hpp"
#include "runtime/core/state/holdings.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace shoal::core {

using index = cost_model::index;

layout_search::layout_search(const layout_problem& p, layout_wishes w)
  : model_(p), wishes_(w) {
  for (index i = 0; i < model_.size(); ++i)
    hosts_shared_ = hosts_shared_ || model_.host_is_shared(i);
  make_orders(p);
}

void layout_search::make_orders(const layout_problem& p) {
  const std::size_t n = model_.size();
  by_speed_.resize(n);
  std::iota(by_speed_.begin(), by_speed_.end(), 0u);
  by_place_ = by_memory_ = by_speed_;
  std::ranges::stable_sort(by_speed_, std::ranges::greater{},
                           [&](index i) { return model_.speed(i); });
  std::ranges::stable_sort(by_memory_, std::ranges::greater{},
                           [&](index i) { return model_.memory(i); });
  std::vector<std::string> network(n);
  std::vector<std::uint32_t> host(n);
  for (index i = 0; i < n; ++i) {
    host[i] = model_.host(i);
    for (const network_profile& x : p.members[i]->networks)
      if (x.name != "host")
        network[i] += x.name + "/";
  }
  std::ranges::stable_sort(by_place_, [&](index a, index b) {
    return std::tie(network[a], host[a]) < std::tie(network[b], host[b]);
  });
  place_rank_.resize(n);
  for (std::uint32_t r = 0; r < n; ++r)
    place_rank_[by_place_[r]] = r;

  using alike = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t,
                           std::string, std::uint64_t>;
  std::map<alike, std::uint32_t> classes;
  speed_sum_ = memory_sum_ = {0};
  for (std::size_t k = 0; k < n; ++k) {
    speed_sum_.push_back(speed_sum_.back() + model_.speed(by_speed_[k]));
    memory_sum_.push_back(
      std::min(memory_sum_.back() + model_.memory(by_memory_[k]), cost_never));
  }
  const holdings before = p.previous ? holdings(*p.previous) : holdings();
  for (index i = 0; i < n; ++i) {
    std::string links;
    for (const network_profile& x : p.members[i]->networks)
      links += x.name + "=" + std::to_string(x.latency) + ","
               + std::to_string(x.bytes_per_s) + "/";
    // A member that already held something is like no other.
    const bool held = !before.of(p.members[i]->id).computes.empty();
    class_.push_back(classes
                       .try_emplace({model_.speed(i), model_.memory(i),
                                     model_.host(i), links, held ? i + 1 : 0},
                                    classes.size())
                       .first->second);
  }
  if (!p.previous)
    return;
  std::vector<std::uint8_t> seen(n, 0);
  for (const replica_place& r : p.previous->replicas) {
    std::vector<index> group;
    for (const stage_place& s : r.stages)
      for (index i = 0; i < n; ++i)
        if (!seen[i] && p.members[i]->id == s.lead()) {
          seen[i] = 1;
          group.push_back(i);
        }
    kept_.push_back(std::move(group)); // may be empty: all are gone
  }
}

std::vector<std::uint32_t>
layout_search::sizes_of(std::uint32_t replicas, std::uint32_t depth) const {
  const auto n = std::uint32_t(model_.size());
  std::vector<std::uint32_t> sizes(replicas, depth);
  if (std::uint64_t{replicas} * depth > n)
    for (std::uint32_t r = 0; r < replicas; ++r)
      sizes[r] = std::min(depth, n / replicas + (r < n % replicas ? 1 : 0));
  return sizes;
}

void layout_search::sort_by_place(grouping& g) const {
  for (auto& members : g)
    std::ranges::sort(members, {}, [&](index i) { return place_rank_[i]; });
}

/// All members in order of place, cut into parts of equal speed.
grouping layout_search::balanced(std::uint32_t replicas) const {
  grouping g(1);
  std::uint64_t so_far = 0;
  const std::uint64_t all = speed_sum_.back();
  for (std::size_t k = 0; k < by_place_.size(); ++k) {
    const auto left = replicas - std::uint32_t(g.size());
    const bool full = g.back().size() >= wishes_.depth_max
                      || so_far >= muldiv(all, g.size(), replicas);
    const bool must = by_place_.size() - k <= left;
    if (!g.back().empty() && left > 0 && (full || must))
      g.emplace_back();
    if (g.back().size() >= wishes_.depth_max)
      break;
    g.back().push_back(by_place_[k]);
    so_far += model_.speed(by_place_[k]);
  }
  return g;
}

std::vector<grouping>
layout_search::groupings(std::uint32_t replicas, std::uint32_t depth) const {
  const std::vector<std::uint32_t> sizes = sizes_of(replicas, depth);
  const std::size_t used = std::accumulate(sizes.begin(), sizes.end(), 0u);
  std::vector<grouping> out;
  auto cut = [&](const std::vector<index>& order) {
    grouping g;
    auto at = order.begin();
    for (std::uint32_t n : sizes) {
      g.emplace_back(at, at + n);
      at += n;
    }
    return g;
  };
  // Deals members out to the groups in turn, back and forth.
  auto deal = [&](const std::vector<index>& order) {
    grouping g(sizes.size());
    std::size_t next = 0;
    for (bool forth = true; next < used; forth = !forth)
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        const std::size_t r = forth ? k : sizes.size() - 1 - k;
        if (g[r].size() < sizes[r])
          g[r].push_back(order[next++]);
      }
    return g;
  };
  auto add = [&](grouping g) {
    if (std::ranges::find(out, g) == out.end())
      out.push_back(std::move(g));
  };
  std::vector<index> near(by_speed_.begin(), by_speed_.begin() + used);
  std::ranges::sort(near, {}, [&](index i) { return place_rank_[i]; });
  add(cut(near)); // puts the members of a pipeline near each other
  grouping across(sizes.size());
  for (std::size_t next = 0, s = 0; next < used; ++s)
    for (std::size_t r = 0; r < sizes.size(); ++r)
      if (s < sizes[r])
        across[r].push_back(near[next++]);
  add(std::move(across)); // puts members that hold the same units near each
                          // other
  add(cut(by_speed_));
  for (const auto* order : {&by_speed_, &by_memory_}) {
    add(deal(*order));
    grouping g = deal(*order);
    sort_by_place(g);
    add(std::move(g));
  }
  add(cut(by_memory_));
  std::vector<index> able = by_speed_; // members with room for a stage come
                                       // first
  const job_entry& job = model_.job();
  const std::uint64_t stage =
    (saturating_mul(job.blocks, job.block_state_bytes + job.activation_bytes)
     + job.embed_state_bytes + job.head_state_bytes)
    / depth;
  std::stable_partition(able.begin(), able.end(),
                        [&](index i) { return model_.memory(i) >= stage; });
  add(cut(able));
  add(deal(able));
  if (wishes_.stages == 0
      && std::uint64_t{replicas} * (depth + 1) > model_.size())
    add(balanced(replicas));
  if (kept_.size() == replicas) { // every member stays where it was
    grouping g = kept_;
    std::vector<index> free = unused(g);
    std::size_t next = 0;
    for (std::size_t r = 0; r < g.size(); ++r) {
      while (g[r].size() < sizes[r] && next < free.size())
        g[r].push_back(free[next++]);
      if (g[r].size() > sizes[r] && wishes_.stages > 0)
        g[r].resize(sizes[r]);
    }
    add(std::move(g));
  }
  return out;
}

std::uint64_t
layout_search::estimate(std::uint32_t replicas, std::uint32_t depth) const {
  const job_entry& job = model_.job();
  const std::uint64_t n =
    std::min<std::uint64_t>(std::uint64_t{replicas} * depth, model_.size());
  const std::uint64_t state =
    saturating_mul(job.blocks, job.block_state_bytes + job.activation_bytes)
    + job.embed_state_bytes + job.head_state_bytes;
  if (saturating_mul(state, replicas) > memory_sum_[n])
    return cost_never;
  const std::uint64_t mean = std::max<std::uint64_t>(1, speed_sum_[n] / n);
  const std::uint64_t fill = std::min(
    muldiv(saturating_mul(job.blocks, job.block_flops) + job.head_flops, 1000,
           mean),
    pace_max);
  const std::uint64_t share = (job.microbatches + replicas - 1) / replicas;
  const std::uint64_t blocks = std::max(1u, job.blocks);
  const std::uint64_t bottleneck =
    muldiv(fill, (blocks + depth - 1) / depth, blocks);
  const auto wire = model_.between(by_speed_);
  std::uint64_t t =
    fill + saturating_mul(share - 1, bottleneck)
    + saturating_mul(depth - 1, 2 * wire.latency)
    + muldiv(muldiv(state / 4 / depth * 2, replicas - 1, replicas),
             1'000'000'000, wire.bytes_per_s);
  if (replicas == 1)
    t = muldiv(t, 100 + fragile_percent, 100);
  return std::min(t, cost_never - 1);
}

} // namespace shoal::core
