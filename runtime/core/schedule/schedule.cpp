// runtime/core/schedule/schedule.cpp -- the choice of the next item, and a
// step's time line.
#include "runtime/core/schedule/schedule.hpp"

#include "runtime/core/assert.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>

namespace shoal::core {
namespace {

/// The largest number of microbatches that interleaved stages keep at one time,
/// for stage number `chunk` of v of a peer: peer i of P first runs 2 (P - i -
/// 1) forwards and those of all its stages but the last for P microbatches, and
/// then alternates.
std::uint32_t interleaved_kept(std::uint32_t peer, std::uint32_t peers,
                               std::uint32_t chunk, std::uint32_t chunks) {
  const std::uint32_t ahead = 2 * (peers - peer - 1) + (chunks - 1) * peers + 1;
  // Of n items in groups of P, stage by stage, the number that belong to one
  // stage.
  auto of_chunk = [&](std::uint32_t n, std::uint32_t c) {
    const std::uint32_t round = peers * chunks;
    const std::uint32_t rest = n % round;
    return n / round * peers + std::clamp(rest, c * peers, (c + 1) * peers)
           - c * peers;
  };
  std::uint32_t most = 1;
  for (std::uint32_t back = 0; back < 2 * peers * chunks; ++back)
    most = std::max(most, of_chunk(ahead + back, chunk)
                            - of_chunk(back, chunks - 1 - chunk));
  return most;
}

} // namespace

std::optional<std::uint32_t>
index_of(const replica_place& replica, const peer_id& peer) {
  std::vector<peer_id> seen;
  for (const stage_place& s : replica.stages) {
    if (s.lead().peer == peer)
      return std::uint32_t(std::ranges::find(seen, peer) - seen.begin());
    if (std::ranges::find(seen, s.lead().peer) == seen.end())
      seen.push_back(s.lead().peer);
  }
  return std::nullopt;
}

pipeline make_pipeline(schedule_kind kind, const replica_place& replica) {
  pipeline p;
  p.kind = kind;
  p.first = replica.first_microbatch;
  p.last = replica.last_microbatch;
  for (const stage_place& s : replica.stages) {
    p.peer_of.push_back(*index_of(replica, s.lead().peer));
    p.peers = std::max(p.peers, p.peer_of.back() + 1);
    p.kept_max.push_back(s.kept_max);
  }
  complete(p);
  return p;
}

namespace {

/// Whether the model's stages are dealt out to the peers in turn, more than one
/// to each.
bool is_dealt_out(const pipeline& p) {
  if (p.peers == 0 || p.stages() <= p.peers || p.stages() % p.peers != 0)
    return false;
  for (std::uint32_t s = 0; s < p.stages(); ++s)
    if (p.peer_of[s] != s % p.peers)
      return false;
  return true;
}

/// Number of forwards by which 1F1B runs ahead of input gradients on a stage.
std::uint32_t usual_ahead(const pipeline& p, std::uint32_t stage) {
  return is_dealt_out(p) ? interleaved_kept(
           stage % p.peers, p.peers, stage / p.peers, p.stages() / p.peers)
                         : p.stages() - stage;
}

} // namespace

kept_range kept_of(const pipeline& p, std::uint32_t stage) {
  const std::uint32_t count = std::max(1u, p.last - p.first);
  const std::uint32_t usual = usual_ahead(p, stage);
  kept_range k{usual, usual};
  if (is_dealt_out(p)) // one group more makes peers wait less for each other
    k.wanted = usual + p.peers;
  else if (p.kind == schedule_kind::zero_bubble)
    k.wanted = 2 * p.stages() - 1; // H2
  return {std::min(k.least, count), std::min(k.wanted, count)};
}

void complete(pipeline& p) {
  p.kept_max.resize(p.stages(), 0);
  p.ahead.assign(p.stages(), 0);
  const bool dealt = is_dealt_out(p);
  for (std::uint32_t s = 0; s < p.stages(); ++s) {
    std::uint32_t& kept = p.kept_max[s];
    if (kept == 0)
      kept = kept_of(p, s).wanted;
    p.ahead[s] = kept;
    if (p.kind != schedule_kind::zero_bubble)
      continue;
    // Memory beyond H1 lets forwards run ahead, up to H2.
    const std::uint32_t usual = usual_ahead(p, s);
    const std::uint32_t more = kept > p.stages() ? kept - p.stages() : 0;
    p.ahead[s] = dealt ? usual : usual + std::min(more, usual - 1);
  }
}

work_order::work_order(const pipeline& p, std::uint32_t peer)
  : work_order(std::initializer_list<pipeline_role>{{0, &p, peer}}) {
}

work_order::work_order(std::span<const pipeline_role> roles) {
  for (const pipeline_role& r : roles)
    add(r);
  for (std::uint32_t l = 0; l < lanes_.size(); ++l)
    for (work_kind k : {work_kind::forward, work_kind::input_gradient,
                        work_kind::weight_gradient})
      order_.push_back({k, l});
}

void work_order::add(const pipeline_role& role) {
  const pipeline& p = *role.line;
  SHOAL_ASSERT(p.first <= p.last && p.kept_max.size() == p.stages()
               && p.ahead.size() == p.stages());
  SHOAL_ASSERT(lanes_.empty()
               || (p.kind == kind_ && lanes_.back().replica < role.replica));
  kind_ = p.kind;
  several_replicas_ = !lanes_.empty();
  const std::size_t others = lanes_.size();
  for (std::uint32_t s = 0; s < p.stages(); ++s)
    if (p.peer_of[s] == role.peer) {
      lane& l = lanes_.emplace_back();
      l.replica = role.replica;
      l.stage = s;
      l.first = p.first;
      l.count = p.last - p.first;
      l.kept_max = std::max(1u, p.kept_max[s]);
      l.ahead = std::max(1u, p.ahead[s]);
      left_ += 3 * std::uint64_t{l.count};
      // Stages with others between them run in groups of as many microbatches
      // as there are peers, so that the next group's inputs are already in
      // transit.
      if (lanes_.size() > others + 1
          && lanes_[lanes_.size() - 2].stage + 1 != s)
        group_ = std::max(group_, p.peers);
    }
}

work_order work_order::forward_only(const pipeline& p, std::uint32_t peer,
                                    std::uint32_t count) {
  pipeline whole = p;
  whole.first = 0;
  whole.last = count;
  std::ranges::fill(whole.kept_max, std::max(1u, count));
  whole.ahead = whole.kept_max;
  work_order out(whole, peer);
  out.backward_ = false;
  std::erase_if(out.order_, [](const candidate& c) {
    return c.kind != work_kind::forward;
  });
  out.left_ /= 3;
  return out;
}

std::uint32_t work_order::done(const candidate& c) const {
  const lane& l = lanes_[c.lane];
  return c.kind == work_kind::forward          ? l.forwards
         : c.kind == work_kind::input_gradient ? l.inputs
                                               : l.weights;
}

std::span<const work_order::candidate> work_order::in_order() {
  auto urgency = [this](const candidate& c) {
    const std::uint32_t m = done(c);
    const std::uint32_t rank = c.kind == work_kind::forward          ? 1
                               : c.kind == work_kind::input_gradient ? 2
                               : kind_ == schedule_kind::zero_bubble
                                 ? 3  // when there is time for it
                                 : 0; // at once
    const auto lanes = std::uint32_t(lanes_.size());
    // In forwards the first stage goes first, in backwards the last one.
    const std::uint32_t turn =
      c.kind == work_kind::forward && group_ > 1 ? c.lane : lanes - c.lane;
    return std::tuple(rank, m / group_, turn, m);
  };
  std::ranges::sort(order_, [&](const candidate& a, const candidate& b) {
    return urgency(a) < urgency(b);
  });
  return order_;
}

bool work_order::may_run(const candidate& c) const {
  const lane& l = lanes_[c.lane];
  const bool full = l.forwards - l.weights >= l.kept_max; // S-3
  switch (c.kind) {
  case work_kind::forward:
    return l.forwards < l.count
           && (!backward_ || (!full && l.forwards - l.inputs < l.ahead));
  case work_kind::input_gradient:
    return l.inputs < l.forwards; // S-2
  case work_kind::weight_gradient:
    // A W that begins just before a B arrives delays all stages before. A peer
    // with several stages usually has other work.
    return l.weights < l.inputs && is_turn_of(l)
           && (kind_ != schedule_kind::zero_bubble || lanes_.size() > 1 || full
               || l.forwards == l.count);
  }
  return false;
}

bool work_order::is_turn_of(const lane& l) const {
  return !several_replicas_
         || std::ranges::all_of(lanes_, [&](const lane& other) {
              if (other.replica == l.replica)
                return true;
              const std::uint32_t before =
                l.weights + (other.replica < l.replica ? 1 : 0);
              return other.weights >= std::min(before, other.count);
            });
}

work_item work_order::at(const candidate& c) const {
  const lane& l = lanes_[c.lane];
  return {c.kind, l.stage, l.first + done(c), l.replica};
}

work_item work_order::begin(const candidate& c) {
  const work_item out = at(c);
  lane& l = lanes_[c.lane];
  ++(c.kind == work_kind::forward          ? l.forwards
     : c.kind == work_kind::input_gradient ? l.inputs
                                           : l.weights);
  --left_;
  return out;
}

bool work_order::gradients_final(std::uint32_t stage,
                                 std::uint32_t replica) const {
  for (const lane& l : lanes_)
    if (l.stage == stage && l.replica == replica)
      return l.weights == l.count;
  return false;
}

namespace {

constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

/// Simulates all peers of a pipeline, from the first event to the last.
class player {
public:
  player(const pipeline& p, std::span<const stage_time> times, bool with_items)
    : p_(p), times_(times), with_items_(with_items), count_(p.last - p.first),
      forward_at_(p.stages(), std::vector<std::uint64_t>(count_, never)),
      back_at_(forward_at_), free_at_(p.peers, 0) {
    SHOAL_ASSERT(times.size() == p.stages());
    for (std::uint32_t i = 0; i < p.peers; ++i)
      orders_.emplace_back(p, i);
    std::ranges::fill(forward_at_.front(), 0);
    std::ranges::fill(back_at_.back(), 0);
    out_.busy.assign(p.peers, 0);
    out_.kept.assign(p.stages(), 0);
    keeps_.assign(p.stages(), 0);
  }

  timeline run() {
    for (std::uint32_t i = 0; i < p_.peers; ++i)
      wake_.push({0, i});
    while (!wake_.empty()) {
      const auto [now, peer] = wake_.top();
      wake_.pop();
      if (free_at_[peer] <= now)
        try_begin(peer, now);
    }
    for (const work_order& o : orders_)
      SHOAL_ASSERT(o.finished()); // S-4
    return std::move(out_);
  }

private:
  using event = std::pair<std::uint64_t, std::uint32_t>; ///< time, peer

  void try_begin(std::uint32_t peer, std::uint64_t now) {
    const auto item = orders_[peer].next([&](const work_item& w) {
      const auto& at = w.kind == work_kind::forward ? forward_at_ : back_at_;
      return at[w.stage][w.microbatch - p_.first] <= now;
    });
    if (!item)
      return;
    const stage_time& t = times_[item->stage];
    const std::uint64_t takes = item->kind == work_kind::forward ? t.forward
                                : item->kind == work_kind::input_gradient
                                  ? t.input_gradient
                                  : t.weight_gradient;
    const std::uint64_t end = now + takes;
    free_at_[peer] = end;
    out_.busy[peer] += takes;
    out_.span = std::max(out_.span, end);
    if (with_items_)
      out_.items.push_back({*item, peer, now, end});
    wake_.push({end, peer});
    pass_on(*item, end);
  }

  void pass_on(const work_item& w, std::uint64_t end) {
    const std::uint32_t s = w.stage;
    const std::uint32_t m = w.microbatch - p_.first;
    if (w.kind == work_kind::forward) {
      out_.kept[s] = std::max(out_.kept[s], ++keeps_[s]);
      if (s + 1 < p_.stages())
        arrive(forward_at_[s + 1][m], s + 1, end + hop(s));
    } else if (w.kind == work_kind::weight_gradient) {
      --keeps_[s];
    } else if (s > 0) {
      arrive(back_at_[s - 1][m], s - 1, end + hop(s - 1));
    }
  }

  std::uint64_t hop(std::uint32_t s) const {
    return p_.peer_of[s] == p_.peer_of[s + 1] ? 0 : times_[s].transfer;
  }

  void arrive(std::uint64_t& at, std::uint32_t stage, std::uint64_t when) {
    at = when;
    wake_.push({when, p_.peer_of[stage]});
  }

  const pipeline& p_;
  std::span<const stage_time> times_;
  bool with_items_;
  std::uint32_t count_;
  std::vector<work_order> orders_;
  std::vector<std::vector<std::uint64_t>> forward_at_, back_at_;
  std::vector<std::uint64_t> free_at_;
  std::vector<std::uint32_t> keeps_;
  std::priority_queue<event, std::vector<event>, std::greater<>> wake_;
  timeline out_;
};

} // namespace

timeline simulate(const pipeline& p, std::span<const stage_time> times,
                  bool with_items) {
  if (p.stages() == 0 || p.first == p.last)
    return {};
  return player(p, times, with_items).run();
}

std::uint32_t timeline::bubble_permille() const {
  __extension__ using wide = unsigned __int128;
  const wide all = wide(span) * busy.size();
  wide used = 0;
  for (std::uint64_t b : busy)
    used += b;
  return all == 0 ? 0 : std::uint32_t((all - used) * 1000 / all);
}

std::uint32_t live_microbatches_max(std::uint32_t stage, std::uint32_t stages,
                                    std::uint32_t microbatches) {
  SHOAL_ASSERT(stage < stages);
  return std::min(stages - stage, microbatches);
}

} // namespace shoal::core
