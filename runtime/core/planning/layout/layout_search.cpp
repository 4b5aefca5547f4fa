// runtime/core/planning/layout/layout_search.cpp -- evaluates groupings and improves
// them.
#include "runtime/core/planning/layout/layout_search.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/job_entry.hpp"

#include <algorithm>
#include <functional>

namespace shoal::core {
namespace {

/// Up to this number of members all moves are tried; above it, some.
constexpr std::size_t try_all_moves_max = 40;
/// The same limit for changes of the number of replicas.
constexpr std::size_t reshape_max = 16;
/// Number of groupings that try_all evaluates exactly.
constexpr std::size_t exact_max = 12;

} // namespace

bool layout_search::allowed(const grouping& g, std::uint32_t replicas) const {
  if (g.empty() || g.size() > wishes_.replicas_max
      || (replicas > 0 && g.size() != replicas))
    return false;
  const bool whole = wishes_.apart && model_.size() >= g.size() * wishes_.peers;
  return std::ranges::all_of(g, [&](const auto& members) {
    return !members.empty() && members.size() <= wishes_.depth_max
           && (!whole || members.size() == wishes_.peers);
  });
}

std::vector<layout_search::index>
layout_search::unused(const grouping& g) const {
  std::vector<std::uint8_t> used(model_.size(), 0);
  for (const auto& members : g)
    for (index i : members)
      used[i] = 1;
  std::vector<index> out;
  for (index i : by_speed_)
    if (!used[i])
      out.push_back(i);
  return out;
}

/// Splits with the replica's share of microbatches; if that does not fit in
/// memory, with one microbatch, since its final share may be smaller.
bool layout_search::split_group(candidate_layout& c, std::size_t r,
                                bool exact) {
  split_replica s;
  for (std::uint32_t m : {c.places[r].microbatches, 1u}) {
    s = split_blocks(model_, c.groups[r], wishes_.stages, m, exact);
    work_ += 8 * c.groups[r].size();
    if (!s.place.stages.empty())
      break;
  }
  if (s.place.stages.empty())
    return false;
  c.places[r] = std::move(s.place);
  c.times[r] = s.time;
  return true;
}

/// Whether a replica has room for its share, where that is more than at its
/// split.
bool layout_search::has_room(const cost_model::replica& r,
                             std::uint32_t split_for) const {
  const auto stages = std::uint32_t(r.stages.size());
  if (r.microbatches <= split_for || split_for >= stages)
    return true;
  std::uint64_t bytes = 0;
  for (std::uint32_t s = 0; s < stages; ++s) {
    if (s > 0 && r.stages[s - 1].who != r.stages[s].who)
      bytes = 0;
    bytes += model_.stage_bytes(r.stages[s].last - r.stages[s].first, s, stages,
                                r.microbatches);
    if (bytes > model_.memory(r.stages[s].who))
      return false;
  }
  return true;
}

/// Sets shares and score from the replicas' times.
void layout_search::total(candidate_layout& c) {
  const auto shares = share_out(c.times, model_.job().microbatches);
  std::uint64_t slowest = 0;
  bool room = true;
  for (std::size_t r = 0; r < c.places.size(); ++r) {
    const std::uint32_t split_for = c.places[r].microbatches;
    c.places[r].microbatches = shares[r];
    slowest = std::max(slowest, c.times[r].of(shares[r]));
    room = room && has_room(c.places[r], split_for);
  }
  work_ += 2 * c.places.size() + 3 * model_.size();
  c.score = {};
  if (!room)
    return;
  const std::uint64_t step =
    slowest + model_.reduction_ns(c.places) + model_.optimizer_ns(c.places);
  c.score = model_.charge(std::min(step, cost_never), c.places);
}

candidate_layout layout_search::evaluate(const grouping& g, bool exact) {
  candidate_layout c;
  c.groups = g;
  model_.use(g);
  const std::uint32_t m = model_.job().microbatches;
  const auto n = std::uint32_t(g.size());
  c.places.resize(n);
  c.times.resize(n);
  for (auto& p : c.places)
    p.microbatches = (m + n - 1) / n;
  candidate_layout best;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t r = 0; r < n; ++r)
      if (!split_group(c, r, exact))
        return best;
    total(c); // shares depend on splits, and splits on shares
    if (exact && !model_.fits(model_.evaluate(c.places)))
      continue;
    if (c.score < best.score)
      best = c;
    if (!exact && best.score.cost < cost_never)
      break;
  }
  return best;
}

bool layout_search::try_whole(candidate_layout& c, std::uint32_t replicas,
                              const grouping& g) {
  if (!allowed(g, replicas))
    return false;
  candidate_layout now = evaluate(g, false);
  const bool better = now.score < c.score;
  if (better)
    c = std::move(now);
  else
    model_.use(c.groups);
  return better;
}

bool layout_search::try_edits(candidate_layout& c, std::uint32_t replicas,
                              std::vector<edit> edits) {
  bool same_members = true;
  std::size_t before = 0, after = 0;
  for (const edit& e : edits) {
    if (e.members.empty() || e.members.size() > wishes_.depth_max)
      return false;
    before += c.groups[e.group].size();
    after += e.members.size();
  }
  same_members = before == after && edits.size() == 2;
  if (hosts_shared_ && !same_members) {
    grouping g = c.groups;
    for (edit& e : edits)
      g[e.group] = std::move(e.members);
    return try_whole(c, replicas, g);
  }
  struct saved {
    std::vector<index> members;
    cost_model::replica place;
    cost_model::pipeline_time time;
  };
  std::vector<saved> old;
  for (edit& e : edits) {
    old.push_back(
      {std::move(c.groups[e.group]), c.places[e.group], c.times[e.group]});
    c.groups[e.group] = std::move(e.members);
  }
  const layout_score was = c.score;
  std::vector<std::uint32_t> shares;
  for (const auto& p : c.places)
    shares.push_back(p.microbatches);
  bool better = allowed(c.groups, replicas);
  for (const edit& e : edits)
    better = better && split_group(c, e.group, false);
  if (better) {
    total(c);
    better = c.score < was;
  }
  if (better)
    return true;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    const std::size_t r = edits[i].group;
    c.groups[r] = std::move(old[i].members);
    c.places[r] = std::move(old[i].place);
    c.times[r] = old[i].time;
  }
  c.score = was;
  for (std::size_t r = 0; r < shares.size(); ++r)
    c.places[r].microbatches = shares[r];
  return false;
}

bool layout_search::swap_all(candidate_layout& c, std::uint32_t replicas,
                             std::uint64_t until) {
  bool any = false;
  for (std::size_t a = 0; a < c.groups.size(); ++a)
    for (std::size_t i = 0; i < c.groups[a].size(); ++i) {
      for (std::size_t b = a; b < c.groups.size(); ++b)
        for (std::size_t j = b == a ? i + 1 : 0; j < c.groups[b].size(); ++j) {
          if (work_ > until)
            return any;
          if (class_[c.groups[a][i]] == class_[c.groups[b][j]])
            continue;
          std::vector<edit> edits{{a, c.groups[a]}};
          if (b != a)
            edits.push_back({b, c.groups[b]});
          std::swap(edits.front().members[i], edits.back().members[j]);
          any = try_edits(c, replicas, std::move(edits)) || any;
        }
      for (index other : unused(c.groups)) {
        if (work_ > until)
          return any;
        if (class_[c.groups[a][i]] == class_[other])
          continue;
        edit e{a, c.groups[a]};
        e.members[i] = other;
        any = try_edits(c, replicas, {std::move(e)}) || any;
      }
    }
  return any;
}

/// Tries each member at each place of other groups and outside of all; tries to
/// add unused members.
bool layout_search::move_all(candidate_layout& c, std::uint32_t replicas,
                             std::uint64_t until) {
  bool any = false;
  auto put = [&](std::size_t b, std::size_t j, index i) {
    edit e{b, c.groups[b]};
    e.members.insert(e.members.begin() + std::ptrdiff_t(j), i);
    return e;
  };
  for (index i : unused(c.groups))
    for (std::size_t b = 0; b < c.groups.size(); ++b)
      for (std::size_t j = 0; j <= c.groups[b].size(); ++j) {
        if (work_ > until)
          return any;
        if (try_edits(c, replicas, {put(b, j, i)})) {
          any = true;
          b = c.groups.size() - 1;
          break;
        }
      }
  for (std::size_t a = 0; a < c.groups.size(); ++a)
    for (std::size_t i = 0; i < c.groups[a].size(); ++i) {
      if (c.groups[a].size() < 2)
        break;
      edit without{a, c.groups[a]};
      const index who = without.members[i];
      without.members.erase(without.members.begin() + std::ptrdiff_t(i));
      bool moved = try_edits(c, replicas, {without});
      for (std::size_t b = 0; b < c.groups.size() && !moved; ++b)
        for (std::size_t j = 0; b != a && j <= c.groups[b].size() && !moved;
             ++j) {
          if (work_ > until)
            return any;
          moved = try_edits(c, replicas, {without, put(b, j, who)});
        }
      any = any || moved;
    }
  return any;
}

/// Tries other numbers of replicas: cuts a group in two, joins two, drops one,
/// or adds an unused member as a group of its own.
bool layout_search::reshape_all(candidate_layout& c, std::uint32_t replicas,
                                std::uint64_t until) {
  if (replicas > 0)
    return false;
  bool any = false;
  for (std::size_t a = 0; a < c.groups.size() && work_ <= until; ++a) {
    for (std::size_t i = 1; i < c.groups[a].size(); ++i) {
      grouping g = c.groups;
      const auto cut = g[a].begin() + std::ptrdiff_t(i);
      g.emplace_back(cut, g[a].end());
      g[a].resize(i);
      any = try_whole(c, replicas, g) || any;
    }
    for (std::size_t b = 0; a < c.groups.size() && b < c.groups.size(); ++b) {
      if (a == b)
        continue;
      grouping g = c.groups;
      g[a].insert(g[a].end(), g[b].begin(), g[b].end());
      g.erase(g.begin() + std::ptrdiff_t(b));
      any = try_whole(c, replicas, g) || any;
    }
    if (c.groups.size() > 1 && a < c.groups.size()) {
      grouping g = c.groups;
      g.erase(g.begin() + std::ptrdiff_t(a));
      any = try_whole(c, replicas, g) || any;
    }
  }
  for (index i : unused(c.groups)) {
    grouping g = c.groups;
    g.push_back({i});
    any = try_whole(c, replicas, g) || any;
  }
  return any;
}

/// Tries swaps drawn from a fixed pseudo-random sequence, half of them with
/// members of the slowest replica.
void layout_search::sample(candidate_layout& c, std::uint32_t replicas,
                           std::uint64_t until) {
  std::uint64_t state = 1;
  auto below = [&](std::size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return std::size_t((state >> 33) % n);
  };
  for (std::size_t misses = 0; work_ <= until && misses < 8 * model_.size();
       ++misses) {
    std::size_t a = below(c.groups.size());
    if (misses % 2 == 0)
      for (std::size_t r = 0; r < c.groups.size(); ++r)
        if (c.times[r].of(c.places[r].microbatches)
            > c.times[a].of(c.places[a].microbatches))
          a = r;
    const std::size_t i = below(c.groups[a].size());
    const auto idle = unused(c.groups);
    work_ += model_.size();
    const std::size_t b = below(c.groups.size() + (idle.empty() ? 0 : 1));
    std::vector<edit> edits{{a, c.groups[a]}};
    if (b == c.groups.size()) {
      edits[0].members[i] = idle[below(idle.size())];
    } else {
      const std::size_t j = below(c.groups[b].size());
      if (b != a)
        edits.push_back({b, c.groups[b]});
      if (class_[edits.front().members[i]] == class_[edits.back().members[j]])
        continue;
      std::swap(edits.front().members[i], edits.back().members[j]);
    }
    if (try_edits(c, replicas, std::move(edits)))
      misses = 0;
  }
}

void layout_search::improve(candidate_layout& c, std::uint32_t replicas,
                            std::uint64_t work) {
  if (c.score.cost == cost_never)
    return;
  const std::uint64_t until = work_ + work;
  model_.use(c.groups);
  for (bool better = true; better && work_ <= until;) {
    better = false;
    if (model_.size() <= reshape_max)
      better = reshape_all(c, replicas, until);
    if (model_.size() > try_all_moves_max)
      return sample(c, replicas, until);
    better = move_all(c, replicas, until) || better;
    better = swap_all(c, replicas, until) || better;
  }
}

candidate_layout layout_search::try_all(std::uint32_t replicas) {
  std::vector<candidate_layout> best;
  grouping g;
  std::function<void(index)> decide = [&](index i) {
    if (i == model_.size()) {
      if (!allowed(g, replicas))
        return;
      candidate_layout c = evaluate(g, false);
      if (c.score.cost == cost_never)
        return;
      auto at =
        std::ranges::upper_bound(best, c.score, {}, &candidate_layout::score);
      best.insert(at, std::move(c));
      if (best.size() > exact_max)
        best.pop_back();
      return;
    }
    decide(i + 1); // leave member i unused
    for (std::size_t r = 0; r < g.size(); ++r)
      for (std::size_t s = 0; s <= g[r].size(); ++s) {
        g[r].insert(g[r].begin() + std::ptrdiff_t(s), i);
        decide(i + 1);
        g[r].erase(g[r].begin() + std::ptrdiff_t(s));
      }
    g.push_back({i});
    decide(i + 1);
    g.pop_back();
  };
  decide(0);
  candidate_layout out;
  for (const candidate_layout& c : best)
    if (candidate_layout now = evaluate(c.groups, true); now.score < out.score)
      out = std::move(now);
  return out;
}

} // namespace shoal::core
