// runtime/core/training/layout.cpp -- candidates, block split, shares, cost.
#include "runtime/core/training/layout.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/training/plan.hpp"
#include "runtime/core/training/schedule.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace shoal::core {
namespace {

constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max() / 4;

std::uint64_t muldiv(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  __extension__ using wide = unsigned __int128;
  wide x = c == 0 ? wide(never) : wide(a) * b / c;
  return x > never ? never : static_cast<std::uint64_t>(x);
}

/// Members (as indices into the problem) by replica, in stage order.
using groups = std::vector<std::vector<std::size_t>>;

/// The work of one stage.
struct slot {
  std::uint64_t speed = 1; ///< MFLOP/s
  std::uint64_t memory = 0;
  std::uint32_t blocks = 0;
};

std::uint64_t stage_ns(const job_entry& job, std::uint32_t blocks, bool last,
                       std::uint64_t speed) {
  std::uint64_t flops = job.block_flops * blocks + (last ? job.head_flops : 0);
  return muldiv(flops, 1000, speed);
}

std::uint64_t
stage_bytes(const job_entry& job, std::uint32_t blocks, std::uint32_t stage,
            std::uint32_t stages, std::uint32_t microbatches) {
  std::uint64_t live = live_microbatches_max(stage, stages, microbatches);
  return blocks * (job.block_state_bytes + job.activation_bytes * live)
         + (stage == 0 ? job.embed_state_bytes : 0)
         + (stage + 1 == stages ? job.head_state_bytes : 0);
}

std::map<std::string, std::uint64_t>
sharing(const std::vector<const member*>& members,
        const std::vector<replica_place>& replicas) {
  std::map<std::string, std::uint64_t> on_host;
  for (const member* m : members) {
    bool used = std::ranges::any_of(replicas, [&](const replica_place& r) {
      return std::ranges::any_of(
        r.stages, [&](const stage_place& s) { return s.where == m->id; });
    });
    on_host[m->host] += used && !m->host.empty() ? 1 : 0;
  }
  return on_host;
}

const member*
find(const std::vector<const member*>& members, const member_id& id) {
  auto at = std::ranges::find(members, id, [](auto* m) { return m->id; });
  return at == members.end() ? nullptr : *at;
}

/// Sum of stage times, and that of the slowest member.
struct pipeline_time {
  std::uint64_t fill = 0;
  std::uint64_t bottleneck = 0;
  std::uint64_t of(std::uint64_t microbatches) const {
    return fill + (microbatches - 1) * bottleneck;
  }
};

pipeline_time time_of(const job_entry& job, const replica_place& r,
                      const std::vector<const member*>& members,
                      const std::map<std::string, std::uint64_t>& on_host) {
  pipeline_time t;
  std::map<member_id, std::uint64_t> busy;
  for (std::size_t s = 0; s < r.stages.size(); ++s) {
    const stage_place& at = r.stages[s];
    const member* m = find(members, at.where);
    if (!m)
      return {never, never};
    auto sharers = on_host.find(m->host);
    std::uint64_t n = sharers == on_host.end() ? 1 : sharers->second;
    std::uint64_t ns =
      stage_ns(job, at.last_block - at.first_block, s + 1 == r.stages.size(),
               std::max<std::uint64_t>(1, m->device.mflops
                                            / std::max<std::uint64_t>(1, n)));
    t.fill += ns + (s > 0 ? 2 * assumed_hop : 0);
    busy[at.where] += ns;
  }
  for (auto& [id, ns] : busy)
    t.bottleneck = std::max(t.bottleneck, ns);
  t.fill = std::min(t.fill, never);
  return t;
}

std::uint64_t parameter_bytes(const job_entry& job) {
  // Parameters are a quarter of the state: gradients and two moments beside.
  return (job.block_state_bytes * job.blocks + job.embed_state_bytes
          + job.head_state_bytes)
         / 4;
}

/// Microbatches to replicas, one by one to whoever would end first.
std::vector<std::uint32_t>
shares(const std::vector<pipeline_time>& times, std::uint32_t microbatches) {
  std::vector<std::uint32_t> n(times.size(), 1);
  for (std::size_t left = microbatches - times.size(); left > 0; --left) {
    std::size_t best = 0;
    for (std::size_t r = 1; r < times.size(); ++r)
      if (times[r].of(n[r] + 1) < times[best].of(n[best] + 1))
        best = r;
    ++n[best];
  }
  return n;
}

/// One replica's stages: which member runs which, and how many blocks.
class splitter {
public:
  splitter(const layout_problem& p, std::uint32_t stages,
           const std::map<std::string, std::uint64_t>& on_host)
    : p_(p), stages_(stages), on_host_(on_host) {}

  /// @returns no stages if it does not fit
  replica_place split(const std::vector<std::size_t>& group,
                      std::uint32_t microbatches) const {
    std::vector<std::size_t> runs = members_of_stages(group);
    std::vector<std::uint32_t> blocks = p_.job.want_blocks;
    if (!usable(blocks)) {
      blocks.assign(stages_, p_.job.blocks == 0 ? 0 : 1);
      if (!fill(group, runs, blocks, microbatches))
        return {};
    }
    replica_place r;
    std::uint32_t first = 0;
    for (std::uint32_t s = 0; s < stages_; ++s) {
      r.stages.push_back({p_.members[runs[s]]->id, first, first + blocks[s]});
      first += blocks[s];
    }
    return r;
  }

private:
  /// Whether these wanted blocks split the model into our stages.
  bool usable(const std::vector<std::uint32_t>& blocks) const {
    return blocks.size() == stages_
           && std::ranges::find(blocks, 0u) == blocks.end()
           && std::accumulate(blocks.begin(), blocks.end(), std::uint64_t{0})
                == p_.job.blocks;
  }

  /// Contiguous stages to members, as even as can be, in proportion to speed
  /// when there are fewer members than stages.
  std::vector<std::size_t>
  members_of_stages(const std::vector<std::size_t>& group) const {
    std::vector<std::uint32_t> count(group.size(), 1);
    for (std::size_t left = stages_ - group.size(); left > 0; --left) {
      std::size_t best = 0;
      for (std::size_t i = 1; i < group.size(); ++i)
        if (std::uint64_t(count[i] + 1) * speed(group[best])
            < std::uint64_t(count[best] + 1) * speed(group[i]))
          best = i;
      ++count[best];
    }
    std::vector<std::size_t> runs;
    for (std::size_t i = 0; i < group.size(); ++i)
      runs.insert(runs.end(), count[i], group[i]);
    return runs;
  }

  /// Gives out blocks one by one to the member that would take least time,
  /// then moves single blocks while that makes the replica faster.
  bool
  fill(const std::vector<std::size_t>& group,
       const std::vector<std::size_t>& runs, std::vector<std::uint32_t>& blocks,
       std::uint32_t microbatches) const {
    std::uint32_t left = p_.job.blocks;
    left -= std::min(left, std::accumulate(blocks.begin(), blocks.end(), 0u));
    if (!fits(group, runs, blocks, microbatches))
      return false;
    for (; left > 0; --left) {
      std::size_t best = stages_;
      for (std::size_t s = 0; s < stages_; ++s) {
        ++blocks[s];
        bool ok = fits(group, runs, blocks, microbatches);
        bool better =
          ok && (best == stages_ || rank(runs, blocks, s) < best_rank_);
        if (better) {
          best = s;
          best_rank_ = rank(runs, blocks, s);
        }
        --blocks[s];
      }
      if (best == stages_)
        return false;
      ++blocks[best];
    }
    improve(group, runs, blocks, microbatches);
    return true;
  }

  using ranking = std::array<std::uint64_t, 3>;

  /// Member's time, then the stage's blocks (evens out stages of one member).
  ranking rank(const std::vector<std::size_t>& runs,
               const std::vector<std::uint32_t>& blocks, std::size_t s) const {
    std::uint64_t busy = 0;
    for (std::size_t t = 0; t < stages_; ++t)
      if (runs[t] == runs[s])
        busy += stage_ns(p_.job, blocks[t], t + 1 == stages_, speed(runs[t]));
    return {busy, blocks[s], s};
  }

  std::uint64_t replica_ns(const std::vector<std::size_t>& group,
                           const std::vector<std::size_t>& runs,
                           const std::vector<std::uint32_t>& blocks,
                           std::uint32_t microbatches) const {
    pipeline_time t;
    for (std::size_t i : group) {
      std::uint64_t busy = 0;
      for (std::size_t s = 0; s < stages_; ++s)
        if (runs[s] == i)
          busy += stage_ns(p_.job, blocks[s], s + 1 == stages_, speed(i));
      t.fill += busy;
      t.bottleneck = std::max(t.bottleneck, busy);
    }
    return t.of(microbatches);
  }

  void improve(const std::vector<std::size_t>& group,
               const std::vector<std::size_t>& runs,
               std::vector<std::uint32_t>& blocks,
               std::uint32_t microbatches) const {
    std::uint64_t best = replica_ns(group, runs, blocks, microbatches);
    for (std::uint32_t n = 0; n < p_.job.blocks; ++n) {
      bool moved = false;
      for (std::size_t a = 0; a < stages_; ++a)
        for (std::size_t b = 0; b < stages_; ++b) {
          if (runs[a] == runs[b] || blocks[a] <= 1)
            continue;
          --blocks[a], ++blocks[b];
          std::uint64_t now = replica_ns(group, runs, blocks, microbatches);
          if (now < best && fits(group, runs, blocks, microbatches)) {
            best = now;
            moved = true;
          } else {
            ++blocks[a], --blocks[b];
          }
        }
      if (!moved)
        return;
    }
  }

  bool fits(const std::vector<std::size_t>& group,
            const std::vector<std::size_t>& runs,
            const std::vector<std::uint32_t>& blocks,
            std::uint32_t microbatches) const {
    for (std::size_t i : group) {
      std::uint64_t bytes = 0;
      for (std::uint32_t s = 0; s < stages_; ++s)
        if (runs[s] == i)
          bytes += stage_bytes(p_.job, blocks[s], s, stages_, microbatches);
      if (bytes > p_.memory.at(p_.members[i]->id.peer))
        return false;
    }
    return true;
  }

  std::uint64_t speed(std::size_t i) const {
    const member* m = p_.members[i];
    auto at = on_host_.find(m->host);
    std::uint64_t n = at == on_host_.end() ? 1 : at->second;
    return std::max<std::uint64_t>(1, m->device.mflops
                                        / std::max<std::uint64_t>(1, n));
  }

  const layout_problem& p_;
  std::uint32_t stages_;
  const std::map<std::string, std::uint64_t>& on_host_;
  mutable ranking best_rank_{};
};

/// Block split and shares for members as grouped.
layout arrange(const layout_problem& p, const groups& g, std::uint32_t stages) {
  std::map<std::string, std::uint64_t> on_host;
  for (const auto& group : g)
    for (std::size_t i : group)
      if (!p.members[i]->host.empty())
        ++on_host[p.members[i]->host];
  splitter split(p, stages, on_host);
  std::uint32_t m = p.job.microbatches;
  auto replicas = static_cast<std::uint32_t>(g.size());
  std::vector<std::uint32_t> share(g.size(), (m + replicas - 1) / replicas);
  layout best;
  for (int round = 0; round < 2; ++round) { // shares depend on splits and back
    layout now;
    std::vector<pipeline_time> times;
    for (std::size_t r = 0; r < g.size(); ++r) {
      now.replicas.push_back(split.split(g[r], share[r]));
      if (now.replicas.back().stages.empty())
        return best;
      times.push_back(time_of(p.job, now.replicas.back(), p.members, on_host));
    }
    share = shares(times, m);
    std::uint32_t first = 0;
    for (std::size_t r = 0; r < g.size(); ++r) {
      now.replicas[r].first_microbatch = first;
      first += share[r];
      now.replicas[r].last_microbatch = first;
    }
    if (auto s = score(p, now.replicas)) {
      now.score = *s;
      if (best.replicas.empty() || now.score < best.score)
        best = std::move(now);
    }
  }
  return best;
}

/// How many members each replica gets.
std::vector<std::size_t>
group_sizes(std::size_t members, std::size_t replicas, std::size_t stages) {
  std::vector<std::size_t> n(replicas, stages);
  if (replicas * stages > members)
    for (std::size_t r = 0; r < replicas; ++r)
      n[r] =
        std::min(stages, members / replicas + (r < members % replicas ? 1 : 0));
  return n;
}

groups cut(const std::vector<std::size_t>& order,
           const std::vector<std::size_t>& sizes) {
  groups g;
  std::size_t at = 0;
  for (std::size_t n : sizes) {
    g.emplace_back(order.begin() + at, order.begin() + at + n);
    at += n;
  }
  return g;
}

/// Orders to begin with when there are too many members to try all.
std::vector<std::vector<std::size_t>>
first_orders(const layout_problem& p, const std::vector<std::size_t>& sizes) {
  std::vector<std::size_t> fast(p.members.size());
  std::iota(fast.begin(), fast.end(), 0);
  std::ranges::stable_sort(fast, [&](std::size_t a, std::size_t b) {
    return p.members[a]->device.mflops > p.members[b]->device.mflops;
  });
  // Dealt out to the replicas in turn, back and forth.
  groups dealt(sizes.size());
  std::size_t next = 0;
  for (bool forth = true, more = true; more; forth = !forth) {
    more = false;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      std::size_t r = forth ? k : sizes.size() - 1 - k;
      if (dealt[r].size() < sizes[r]) {
        dealt[r].push_back(fast[next++]);
        more = true;
      }
    }
  }
  std::vector<std::size_t> snake;
  for (auto& d : dealt)
    snake.insert(snake.end(), d.begin(), d.end());
  snake.insert(snake.end(), fast.begin() + next, fast.end());
  // Everybody where they were, the fastest others in the gaps.
  std::vector<std::size_t> kept;
  if (p.previous) {
    std::vector<std::size_t> rest = fast;
    std::vector<std::optional<std::size_t>> at;
    for (const replica_place& r : p.previous->replicas)
      for (std::size_t s = 0; s < r.stages.size(); ++s) {
        auto found = std::ranges::find_if(rest, [&](std::size_t i) {
          return p.members[i]->id == r.stages[s].where;
        });
        at.push_back(std::nullopt);
        if (found != rest.end()) {
          at.back() = *found;
          rest.erase(found);
        }
      }
    std::size_t fill = 0;
    for (auto& i : at)
      if (i)
        kept.push_back(*i);
      else if (fill < rest.size())
        kept.push_back(rest[fill++]);
    kept.insert(kept.end(), rest.begin() + fill, rest.end());
  }
  std::vector<std::vector<std::size_t>> out{fast, snake};
  if (!kept.empty())
    out.push_back(kept);
  return out;
}

/// The best of one shape; `order` is what it was cut from.
layout
best_of_shape(const layout_problem& p, const std::vector<std::size_t>& sizes,
              std::uint32_t stages, std::vector<std::size_t>& order) {
  layout best;
  auto consider = [&](const std::vector<std::size_t>& o) {
    layout now = arrange(p, cut(o, sizes), stages);
    if (now.replicas.empty()
        || (!best.replicas.empty() && !(now.score < best.score)))
      return;
    best = std::move(now);
    order = o;
  };
  if (p.members.size() <= try_all_members_max) {
    std::vector<std::size_t> o(p.members.size());
    std::iota(o.begin(), o.end(), 0);
    do
      consider(o);
    while (std::ranges::next_permutation(o).found);
  } else {
    for (const auto& o : first_orders(p, sizes))
      consider(o);
  }
  return best;
}

struct shape {
  std::vector<std::size_t> sizes;
  std::uint32_t stages = 1;
  std::vector<std::size_t> order;
};

/// Swaps pairs of members while that helps.
void climb(const layout_problem& p, const shape& s, layout& best) {
  if (p.members.size() <= try_all_members_max)
    return;
  std::vector<std::size_t> order = s.order;
  std::size_t used =
    std::accumulate(s.sizes.begin(), s.sizes.end(), std::size_t{0});
  int passes = p.members.size() <= climb_twice_max ? 2 : 1;
  for (int pass = 0; pass < passes; ++pass) {
    bool better = false;
    for (std::size_t a = 0; a < used; ++a)
      for (std::size_t b = a + 1; b < order.size(); ++b) {
        std::swap(order[a], order[b]);
        layout now = arrange(p, cut(order, s.sizes), s.stages);
        if (!now.replicas.empty() && now.score < best.score) {
          best = std::move(now);
          better = true;
        } else {
          std::swap(order[a], order[b]);
        }
      }
    if (!better)
      return;
  }
}

} // namespace

prediction predict_replicas(const job_entry& job,
                            const std::vector<const member*>& members,
                            const std::vector<replica_place>& replicas) {
  prediction out;
  auto on_host = sharing(members, replicas);
  std::map<member_id, std::uint64_t> bytes;
  std::uint64_t slowest = 0;
  for (const replica_place& r : replicas) {
    std::uint32_t m = r.last_microbatch - r.first_microbatch;
    slowest = std::max(slowest, time_of(job, r, members, on_host).of(m));
    auto stages = static_cast<std::uint32_t>(r.stages.size());
    for (std::uint32_t s = 0; s < stages; ++s)
      bytes[r.stages[s].where] += stage_bytes(
        job, r.stages[s].last_block - r.stages[s].first_block, s, stages, m);
  }
  std::uint64_t n = replicas.size();
  if (n > 1) { // reduce-scatter and all-gather, in parallel over the stages
    std::uint64_t stages = replicas.front().stages.size();
    slowest += 2 * assumed_hop
               + muldiv(2 * parameter_bytes(job) / stages * (n - 1) / n,
                        1'000'000'000, assumed_bytes_per_s);
  }
  out.step = static_cast<nanoseconds>(std::min(slowest, never));
  for (auto& [where, b] : bytes)
    out.memory.push_back({where, b});
  return out;
}

std::optional<layout_score>
score(const layout_problem& p, const std::vector<replica_place>& replicas) {
  prediction now = predict_replicas(p.job, p.members, replicas);
  for (const auto& need : now.memory) {
    auto limit = p.memory.find(need.where.peer);
    if (limit == p.memory.end() || need.bytes > limit->second)
      return std::nullopt;
  }
  layout_score s;
  s.unused_members = p.members.size() - now.memory.size();
  if (p.previous && !p.previous->replicas.empty()) {
    for (const replica_place& r : replicas)
      for (const stage_place& to : r.stages)
        for (std::uint32_t b = to.first_block; b < to.last_block; ++b) {
          bool held = false;
          for (const replica_place& q : p.previous->replicas)
            for (const stage_place& was : q.stages)
              held = held
                     || (was.where == to.where && b >= was.first_block
                         && b < was.last_block);
          s.moved_bytes += held ? 0 : p.job.block_state_bytes;
        }
  }
  s.cost =
    static_cast<std::uint64_t>(now.step)
    + muldiv(s.moved_bytes, 1'000'000'000, assumed_bytes_per_s) / repay_steps;
  if (replicas.size() == 1 && p.job.want_replicas < 0 && p.members.size() > 1)
    s.cost = muldiv(s.cost, 100 + fragile_percent, 100);
  return s;
}

layout find_layout(const layout_problem& p) {
  const job_entry& job = p.job;
  layout best;
  shape best_shape;
  if (p.members.empty() || job.microbatches == 0)
    return best;
  std::uint32_t deepest = std::max<std::uint32_t>(1, job.blocks);
  auto n = static_cast<std::uint32_t>(p.members.size());
  std::uint32_t most = std::min(n, job.microbatches);
  bool want_r = job.want_replicas > 0;
  std::uint32_t want_p = job.want_stages > 0
                           ? static_cast<std::uint32_t>(job.want_stages)
                         : !job.want_blocks.empty()
                           ? static_cast<std::uint32_t>(job.want_blocks.size())
                           : 0;
  want_p = std::min(want_p, deepest);
  if (want_r)
    most = std::min(most, static_cast<std::uint32_t>(job.want_replicas));
  for (std::uint32_t r = most; r >= 1; --r) {
    for (std::uint32_t s = want_p ? want_p : 1;
         s <= (want_p ? want_p : std::min(deepest, n / r)); ++s) {
      shape now{group_sizes(n, r, s), s, {}};
      layout found = best_of_shape(p, now.sizes, s, now.order);
      if (found.replicas.empty()
          || (!best.replicas.empty() && !(found.score < best.score)))
        continue;
      best = std::move(found);
      best_shape = std::move(now);
    }
    if (want_r && !best.replicas.empty())
      break; // as many replicas as fit
  }
  if (!best.replicas.empty())
    climb(p, best_shape, best);
  return best;
}

} // namespace shoal::core
