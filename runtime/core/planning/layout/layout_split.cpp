// runtime/core/planning/layout/layout_split.cpp -- the best split for each T.
#include "runtime/core/planning/layout/layout_split.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/job_entry.hpp"
#include "runtime/core/schedule/schedule.hpp"

#include <algorithm>
#include <numeric>

namespace shoal::core {
namespace {

using index = cost_model::index;

/// `exact` tries every T up to this product of members x blocks.
constexpr std::uint64_t try_all_max = 1024;

struct lane { ///< one member's consecutive stages
  index who = 0;
  std::uint32_t stages = 1;
  std::uint64_t block = 0; ///< ns
  std::uint64_t extra = 0; ///< ns, of the head
  std::uint32_t cap = 0;   ///< blocks that fit in its memory
  std::uint32_t blocks = 0;
};

class splitter {
public:
  splitter(const cost_model& model, std::uint32_t stages,
           std::uint32_t microbatches)
    : model_(model), job_(model.job()), stages_(stages),
      microbatches_(microbatches) {}

  split_replica run(std::span<const index> group, bool exact) {
    if (!set_lanes(group))
      return {};
    add_hops();
    if (job_.want_blocks.size() == stages_ && wanted_blocks_split_the_model())
      return finish(job_.want_blocks);
    if (!find_best(exact))
      return {};
    std::vector<std::uint32_t> blocks;
    for (const lane& l : lanes_)
      for (std::uint32_t s = 0; s < l.stages; ++s)   // more to later stages,
        blocks.push_back((l.blocks + s) / l.stages); // which keep fewer
                                                     // microbatches
    return finish(blocks);
  }

private:
  bool wanted_blocks_split_the_model() const {
    const auto& want = job_.want_blocks;
    return std::ranges::find(want, 0u) == want.end()
           && std::accumulate(want.begin(), want.end(), std::uint64_t{0})
                == job_.blocks;
  }

  /// Stages as even as possible, in proportion to speed.
  void count_stages() {
    for (auto left = stages_ - lanes_.size(); left > 0; --left) {
      lane* best = &lanes_.front();
      for (lane& l : lanes_)
        if ((l.stages + 1) * l.block < (best->stages + 1) * best->block)
          best = &l;
      ++best->stages;
    }
  }

  bool set_lanes(std::span<const index> group) {
    lanes_.clear();
    for (index i : group)
      lanes_.push_back({i, 1, model_.pace_of(i).block, 0, 0, 0});
    lanes_.back().extra = model_.pace_of(group.back()).head;
    count_stages();
    std::uint32_t first = 0;
    std::uint64_t room = 0;
    for (lane& l : lanes_) {
      std::uint64_t live = 0;
      for (std::uint32_t s = 0; s < l.stages; ++s)
        live += live_microbatches_max(first + s, stages_, microbatches_);
      live = (live + l.stages - 1) / l.stages;
      const std::uint64_t fixed =
        (first == 0 ? job_.embed_state_bytes : 0)
        + (first + l.stages == stages_ ? job_.head_state_bytes : 0);
      const std::uint64_t memory = model_.memory(l.who);
      const std::uint64_t each = std::max<std::uint64_t>(
        1, job_.block_state_bytes + job_.activation_bytes * live);
      if (memory < fixed)
        return false;
      l.cap = std::uint32_t(
        std::min<std::uint64_t>(job_.blocks, (memory - fixed) / each));
      if (l.cap < l.stages && job_.blocks > 0)
        return false;
      room += l.cap;
      first += l.stages;
    }
    return room >= job_.blocks;
  }

  void add_hops() {
    hops_ = link_ = 0;
    for (std::size_t i = 1; i < lanes_.size(); ++i) {
      const auto l = model_.between(lanes_[i - 1].who, lanes_[i].who);
      const std::uint64_t transfer =
        muldiv(job_.boundary_bytes, 1'000'000'000, l.bytes_per_s);
      hops_ = std::min(hops_ + 2 * (l.latency + transfer), cost_never);
      link_ = std::max(link_, transfer);
    }
  }

  static std::uint32_t room_below(const lane& l, std::uint64_t t) {
    if (t < l.extra)
      return 0;
    if (l.block == 0)
      return l.cap;
    return std::uint32_t(
      std::min<std::uint64_t>(l.cap, (t - l.extra) / l.block));
  }

  bool possible(std::uint64_t t) const {
    std::uint64_t room = 0;
    for (const lane& l : lanes_) {
      const std::uint32_t r = room_below(l, t);
      if (r < l.stages && job_.blocks > 0)
        return false;
      room += r;
    }
    return room >= job_.blocks;
  }

  std::uint64_t least_possible(bool exact) const {
    std::uint64_t low = 0;
    for (const lane& l : lanes_)
      low = std::max(low, l.stages * l.block + l.extra);
    if (possible(low))
      return low;
    std::uint64_t high = std::max<std::uint64_t>(low, 1);
    while (!possible(high)) {
      low = high;
      high *= 2;
    }
    while (high - low > (exact ? 1 : 1 + low / 256)) {
      const std::uint64_t middle = low + (high - low) / 2;
      (possible(middle) ? high : low) = middle;
    }
    return high;
  }

  /// Assigns all blocks within time `t`, fastest members first.
  void give_out(std::uint64_t t, const std::vector<std::uint32_t>& order) {
    std::uint32_t left = job_.blocks;
    for (lane& l : lanes_) {
      l.blocks = std::min(l.stages, left);
      left -= l.blocks;
    }
    for (std::uint32_t i : order) {
      lane& l = lanes_[i];
      const std::uint32_t more =
        std::min(left, room_below(l, t) - std::min(room_below(l, t), l.blocks));
      l.blocks += more;
      left -= more;
    }
  }

  std::uint64_t time() const {
    std::uint64_t fill = hops_, bottleneck = link_;
    for (const lane& l : lanes_) {
      const std::uint64_t ns = l.blocks * l.block + l.extra;
      fill += ns;
      bottleneck = std::max(bottleneck, ns);
    }
    return cost_model::pipeline_time{fill, bottleneck}.of(microbatches_);
  }

  std::vector<std::uint64_t> times_to_try(bool exact) const {
    const std::uint64_t least = least_possible(exact);
    std::vector<std::uint64_t> out{least};
    const bool alike = std::ranges::all_of(
      lanes_, [&](const lane& l) { return l.block == lanes_.front().block; });
    if (alike) // then every split has the same fill
      return out;
    if (exact && lanes_.size() * job_.blocks <= try_all_max) {
      for (const lane& l : lanes_)
        for (std::uint32_t b = 1; b <= l.cap; ++b)
          if (const auto t = b * l.block + l.extra; t > least)
            out.push_back(t);
      std::ranges::sort(out);
      out.erase(std::unique(out.begin(), out.end()), out.end());
      return out;
    }
    for (std::uint64_t eighths : {9, 10, 12, 16, 32})
      out.push_back(least * eighths / 8);
    out.push_back(cost_never);
    return out;
  }

  bool find_best(bool exact) {
    std::vector<std::uint32_t> order(lanes_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {},
                             [&](std::uint32_t i) { return lanes_[i].block; });
    std::vector<lane> best;
    std::uint64_t best_time = cost_never;
    for (std::uint64_t t : times_to_try(exact)) {
      give_out(t, order);
      if (const std::uint64_t now = time(); best.empty() || now < best_time) {
        best_time = now;
        best = lanes_;
      }
    }
    lanes_ = std::move(best);
    return true;
  }

  split_replica finish(std::span<const std::uint32_t> blocks) {
    split_replica out;
    out.place.microbatches = microbatches_;
    std::uint32_t at = 0, stage = 0;
    for (const lane& l : lanes_)
      for (std::uint32_t s = 0; s < l.stages; ++s, ++stage) {
        out.place.stages.push_back({l.who, at, at + blocks[stage]});
        at += blocks[stage];
      }
    SHOAL_ASSERT(at == job_.blocks);
    out.time = model_.time_of(out.place);
    return out;
  }

  const cost_model& model_;
  const job_entry& job_;
  std::uint32_t stages_;
  std::uint32_t microbatches_;
  std::vector<lane> lanes_;
  std::uint64_t hops_ = 0;
  std::uint64_t link_ = 0; ///< the slowest link's time for a microbatch
};

} // namespace

split_replica
split_blocks(const cost_model& model, std::span<const index> group,
             std::uint32_t stages, std::uint32_t microbatches, bool exact) {
  SHOAL_ASSERT(!group.empty() && microbatches > 0);
  const auto members = std::uint32_t(group.size());
  stages = std::max(stages, members);
  if (stages > std::max(1u, model.job().blocks))
    return {};
  return splitter(model, stages, microbatches).run(group, exact);
}

std::vector<std::uint32_t>
share_out(std::span<const cost_model::pipeline_time> times,
          std::uint32_t microbatches) {
  SHOAL_ASSERT(!times.empty() && microbatches >= times.size());
  auto by = [](const cost_model::pipeline_time& t, std::uint64_t end) {
    if (end < t.fill)
      return std::uint64_t{0};
    return t.bottleneck == 0 ? cost_never : 1 + (end - t.fill) / t.bottleneck;
  };
  // The number of microbatches that are done by `end`, if each replica has at
  // least one.
  auto done = [&](std::uint64_t end) {
    std::uint64_t n = 0;
    for (const auto& t : times)
      n += std::clamp<std::uint64_t>(by(t, end), 1, microbatches);
    return n >= microbatches;
  };
  std::uint64_t high = cost_never;
  for (const auto& t : times)
    high = std::min(high, std::min(t.of(microbatches), cost_never));
  std::uint64_t low = 0; // not done at `low`, or low == high
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (done(middle))
      high = middle;
    else
      low = middle + 1;
  }
  std::vector<std::uint32_t> out;
  std::uint64_t left = microbatches;
  for (const auto& t : times) {
    const std::uint64_t n =
      high == 0 ? 1 : std::clamp<std::uint64_t>(by(t, high - 1), 1, left);
    out.push_back(std::uint32_t(n));
    left -= n;
  }
  for (std::size_t r = 0; r < times.size() && left > 0; ++r)
    if (by(times[r], high) > out[r] || times[r].bottleneck == 0) {
      const auto more =
        std::min<std::uint64_t>(left, by(times[r], high) - out[r]);
      out[r] += std::uint32_t(more);
      left -= more;
    }
  out.back() += std::uint32_t(left);
  return out;
}

} // namespace shoal::core
