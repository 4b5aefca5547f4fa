// runtime/core/planning/layout/layout.cpp -- which shapes are searched, and the best.
#include "runtime/core/planning/layout/layout.hpp"

#include "runtime/core/planning/layout/layout_search.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <set>

namespace shoal::core {
namespace {

/// Limit of the candidates that are improved, and of those among them with the
/// same number of replicas: no small change leads to another number.
constexpr std::size_t improve_max = 12;
constexpr std::size_t improve_alike_max = 4;

struct shape {
  std::uint64_t estimate = 0;
  std::uint32_t replicas = 1;
  std::uint32_t depth = 1;
  friend auto operator<=>(const shape&, const shape&) = default;
};

std::uint32_t deepest_of(const job_entry& job) {
  return std::uint32_t(
    std::min<std::size_t>(std::max(1u, job.blocks), layout_stages_max));
}

layout_wishes wishes_of(const layout_problem& p) {
  const job_entry& job = p.job;
  layout_wishes w;
  w.replicas_max = std::uint32_t(std::min<std::size_t>(
    {p.members.size(), job.microbatches, layout_replicas_max}));
  if (job.want_replicas > 0) {
    w.replicas_wanted = true;
    w.replicas_max = std::min(w.replicas_max, std::uint32_t(job.want_replicas));
  }
  w.stages = wanted_stages(job);
  w.depth_max = w.stages > 0 ? w.stages : deepest_of(job);
  return w;
}

/// The wishes with `peers` members for the stages of each replica: no more
/// replicas than there are members for, unless the job asks for more.
layout_wishes apart(layout_wishes w, std::size_t members, std::uint32_t peers) {
  w.apart = true;
  w.peers = w.depth_max = peers;
  if (!w.replicas_wanted)
    w.replicas_max =
      std::uint32_t(std::min<std::size_t>(w.replicas_max, members / peers));
  return w;
}

/// Shapes with `replicas` replicas (0: any number), the most promising first.
std::vector<shape> shapes_of(const layout_search& search,
                             const layout_wishes& w, std::uint32_t replicas) {
  std::vector<shape> out;
  const auto n = std::uint32_t(search.model().size());
  const std::uint32_t low = replicas ? replicas : 1;
  const std::uint32_t high = replicas ? replicas : w.replicas_max;
  for (std::uint32_t r = low; r <= high; ++r) {
    const std::uint32_t room = std::max(1u, n / r);
    const std::uint32_t most = std::min(w.depth_max, room);
    const auto add = [&](std::uint32_t d) {
      if (const std::uint64_t t = search.estimate(r, d); t < cost_never)
        out.push_back({t, r, d});
    };
    for (std::uint32_t d = 1; d <= most && !w.apart; ++d)
      if (d != w.stages)
        add(d);
    if (w.stages > 0) // all members, if there are fewer
      add(w.apart ? w.peers : w.stages);
  }
  std::ranges::sort(out);
  return out;
}

void keep(std::vector<candidate_layout>& best, candidate_layout c) {
  const std::size_t replicas = c.groups.size();
  auto at =
    std::ranges::upper_bound(best, c.score, {}, &candidate_layout::score);
  best.insert(at, std::move(c));
  std::size_t alike = 0;
  for (auto b = best.begin(); b != best.end();)
    b = b->groups.size() == replicas && ++alike > improve_alike_max
          ? best.erase(b)
          : std::next(b);
  if (best.size() > improve_max)
    best.pop_back();
}

candidate_layout find_among_many(layout_search& search, const layout_wishes& w,
                                 std::uint32_t replicas) {
  const std::uint64_t all = work_base + work_per_member * search.model().size();
  const std::uint64_t begun = search.work();
  std::vector<candidate_layout> best;
  for (const shape& s : shapes_of(search, w, replicas)) {
    if (!best.empty() && search.work() - begun > all / 2)
      break;
    for (const grouping& g : search.groupings(s.replicas, s.depth)) {
      if (!search.allowed(g, replicas))
        continue;
      candidate_layout c = search.evaluate(g, false);
      if (c.score.cost == cost_never)
        continue;
      keep(best, std::move(c));
    }
  }
  candidate_layout out;
  for (std::size_t i = 0; i < best.size(); ++i) {
    const std::uint64_t spent = std::min(all, search.work() - begun);
    search.improve(best[i], replicas, (all - spent) / (best.size() - i));
    if (candidate_layout now = search.evaluate(best[i].groups, true);
        now.score < out.score)
      out = std::move(now);
  }
  return out;
}

candidate_layout
find(layout_search& search, const layout_wishes& w, std::uint32_t replicas) {
  return search.model().size() <= try_all_members_max
           ? search.try_all(replicas)
           : find_among_many(search, w, replicas);
}

layout find_with(const layout_problem& p, const layout_wishes& w) {
  layout_search search(p, w);
  candidate_layout best;
  if (!w.replicas_wanted) {
    best = find(search, w, 0);
  } else {
    // As many replicas as fit. Where members would run several stages each,
    // fewer replicas may be faster.
    for (std::uint32_t r = w.replicas_max; r >= 1; --r) {
      candidate_layout now = find(search, w, r);
      if (now.score < best.score)
        best = std::move(now);
      if (best.score.cost < cost_never && r * w.stages <= p.members.size())
        break;
    }
  }
  if (best.score.cost == cost_never)
    return {};
  return {search.model().placed(best.places), best.score};
}

} // namespace

std::uint32_t wanted_stages(const job_entry& job) {
  const auto wanted = job.want_stages > 0
                        ? std::uint32_t(job.want_stages)
                        : std::uint32_t(job.want_blocks.size());
  return std::min(wanted, deepest_of(job));
}

bool stages_apart(const job_entry& job,
                  const std::vector<replica_place>& replicas) {
  const std::uint32_t wanted = wanted_stages(job);
  return std::ranges::all_of(replicas, [&](const replica_place& r) {
    std::set<member_id> members;
    for (const stage_place& s : r.stages)
      for (const shard_place& shard : s.shards)
        members.insert(shard.where.member);
    return members.size() >= wanted;
  });
}

layout find_layout(const layout_problem& p) {
  if (p.members.empty() || p.job.microbatches == 0)
    return {};
  const layout_wishes w = wishes_of(p);
  if (w.stages > 0 && w.stages <= p.members.size())
    if (layout out = find_with(p, apart(w, p.members.size(), w.stages));
        !out.replicas.empty())
      return out;
  return find_with(p, w);
}

layout find_spread_layout(const layout_problem& p) {
  if (p.members.empty() || p.job.microbatches == 0)
    return {};
  const layout_wishes w = wishes_of(p);
  for (auto peers =
         std::uint32_t(std::min<std::size_t>(w.stages, p.members.size()));
       peers > 1; --peers)
    if (layout out = find_with(p, apart(w, p.members.size(), peers));
        !out.replicas.empty())
      return out;
  return find_with(p, w);
}

prediction predict_replicas(const job_entry& job,
                            const std::vector<const member*>& members,
                            const std::vector<replica_place>& replicas) {
  prediction out;
  layout_problem p{job, members, {}, nullptr, {}};
  cost_model model(p);
  const auto r = model.indexed(replicas);
  if (!r)
    return {nanoseconds(cost_never), {}};
  const auto e = model.evaluate(*r);
  out.step = nanoseconds(e.step);
  for (std::size_t i = 0; i < members.size(); ++i)
    if (e.bytes[i] > 0)
      out.members.push_back({members[i]->id, e.bytes[i],
                             nanoseconds(model.busy(*r, std::uint32_t(i)))});
  return out;
}

} // namespace shoal::core
