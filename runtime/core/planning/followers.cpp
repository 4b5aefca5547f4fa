// runtime/core/planning/followers.cpp -- copies where there is memory.
#include "runtime/core/planning/followers.hpp"

#include "runtime/core/planning/arrivals.hpp"
#include "runtime/core/planning/detours.hpp"
#include "runtime/core/planning/layout/layout.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/state/holdings.hpp"
#include "runtime/core/state/parts.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace shoal::core {
namespace {

class chooser {
public:
  chooser(const island_place& a, const layout_problem& p)
    : job_(p.job), members_(p.members), memory_(p.memory) {
    for (const auto& need :
         predict_replicas(p.job, p.members, a.replicas).members) {
      loads_[need.where] = need.bytes;
      std::uint64_t& left = memory_[need.where.peer];
      left -= std::min(left, need.bytes);
    }
    const holdings now(a);
    const holdings before = p.previous ? holdings(*p.previous) : holdings();
    for (const member* m : members_) {
      now_[m->id] = kept(now.of(m->id.peer));
      part_set& had = before_[m->id] = kept(before.of(m->id.peer));
      had.add(before.of(m->id.peer).arrives); // do not move back what is on its
                                              // way
    }
  }

  /// Smallest number of places among these units.
  std::uint32_t places(const part_range& units) const {
    std::uint32_t least = std::uint32_t(members_.size());
    for (std::uint32_t u = units.first; u < units.last; ++u)
      least = std::min(
        least, std::uint32_t(std::ranges::count_if(now_, [&](const auto& held) {
          return held.second.contains(u);
        })));
    return least;
  }

  /// @returns nothing if no member has the memory
  std::optional<holder_place>
  choose(const part_range& units, const member& owner) {
    const std::uint64_t bytes = state_bytes(job_, units);
    using rank =
      std::tuple<bool, bool, std::uint32_t, std::uint64_t, member_id>;
    std::optional<rank> best;
    for (const member* m : members_) {
      if (now_[m->id].overlaps(units) || memory_[m->id.peer] < bytes)
        continue;
      const rank r{m->device.mflops < owner.device.mflops / follower_slower_max,
                   !m->host.empty() && m->host == owner.host,
                   units.size() - before_[m->id].count(units), loads_[m->id],
                   m->id};
      if (!best || r < *best)
        best = r;
    }
    if (!best)
      return std::nullopt;
    const member_id& who = std::get<member_id>(*best);
    memory_[who.peer] -= bytes;
    loads_[who] += bytes;
    now_[who].add(units);
    return holder_place{who, units.first, units.last};
  }

private:
  /// Also copies that lag behind.
  static part_set kept(const member_parts& m) {
    part_set all = m.computes;
    all.add(m.follows);
    return all;
  }

  const job_entry& job_;
  const std::vector<const member*>& members_;
  std::map<peer_id, std::uint64_t> memory_; ///< left
  std::map<member_id, std::uint64_t> loads_;
  std::map<member_id, part_set> now_, before_;
};

/// What copies cost in one step, in nanoseconds, for the member with the
/// highest cost.
struct copy_cost {
  std::uint64_t each_step = 0; ///< gradients and the optimizer
  std::uint64_t whole = 0;     ///< one copy of everything
};

copy_cost cost_of_copies(const island_place& a, const layout_problem& p) {
  cost_model model(p);
  auto index_of = [&](const member_id& id) {
    return cost_model::index(
      std::ranges::find(p.members, id, [](const member* m) { return m->id; })
      - p.members.begin());
  };
  std::vector<copy_cost> by_member(p.members.size());
  const auto& stages = a.replicas.front().stages;
  for (const holder_place& f : a.followers)
    for (std::uint32_t s = 0; s < stages.size(); ++s) {
      const part_range units =
        common(parts_of_stage(stages[s], s == 0, s + 1 == stages.size()),
               {f.first_unit, f.last_unit});
      const std::uint64_t bytes = state_bytes(p.job, units);
      if (bytes == 0)
        continue;
      const auto from = index_of(stages[s].lead()),
                 to = index_of(f.where.member);
      // The parameters and each of the two moments take as long.
      const std::uint64_t sent =
        muldiv(gradient_bytes(p.job, units), 1'000'000'000,
               model.between(from, to).bytes_per_s);
      const std::uint64_t apply = model.apply_ns(to, bytes);
      by_member[from].each_step += sent;
      by_member[to].each_step += sent + apply;
      by_member[from].whole += 3 * sent + model.apply_ns(from, bytes);
      by_member[to].whole += 3 * sent;
    }
  copy_cost most;
  for (const copy_cost& c : by_member) {
    most.each_step = std::max(most.each_step, c.each_step);
    most.whole = std::max(most.whole, c.whole);
  }
  return most;
}

void choose_copy_every(island_place& a, const layout_problem& p) {
  a.copy_every = 1;
  if (a.followers.empty())
    return;
  if (p.job.want_copy_every > 0) {
    a.copy_every = p.job.want_copy_every;
  } else if (p.previous && p.previous->replicas == a.replicas
             && p.previous->followers == a.followers) {
    a.copy_every = p.previous->copy_every; // a change is not worth a halt
  } else {
    const auto step =
      std::uint64_t(predict_replicas(p.job, p.members, a.replicas).step);
    const std::uint64_t may =
      std::max<std::uint64_t>(muldiv(step, copy_cost_permille, 1000), 1);
    const copy_cost cost = cost_of_copies(a, p);
    if (cost.each_step > may)
      a.copy_every = std::uint32_t(
        std::clamp<std::uint64_t>(cost.whole / may + 1, 2, copy_every_max));
  }
  if (a.copy_every > 1 && !fits_memory(a, p))
    a.copy_every = 1;
}

} // namespace

bool fits_memory(const island_place& a, const layout_problem& p) {
  std::map<member_id, std::uint64_t> bytes = copy_bytes(p.job, a);
  for (const auto& need :
       predict_replicas(p.job, p.members, a.replicas).members)
    bytes[need.where] += need.bytes;
  return std::ranges::all_of(bytes, [&](const auto& of) {
    const auto at = p.memory.find(of.first.peer);
    return at != p.memory.end() && of.second <= at->second;
  });
}

void place_followers(island_place& a, const layout_problem& p) {
  a.followers.clear();
  a.copy_every = 1;
  const std::uint32_t wanted = p.job.want_copies + 1;
  if (a.replicas.empty()
      || (a.replicas.size() >= wanted && !makes_detour(a.replicas)))
    return; // no member is in two replicas
  chooser choose(a, p);
  const auto& stages = a.replicas.front().stages;
  for (std::uint32_t s = 0; s < stages.size(); ++s) {
    const part_range units =
      parts_of_stage(stages[s], s == 0, s + 1 == stages.size());
    const auto owner = std::ranges::find(p.members, stages[s].lead(),
                                         [](const member* m) { return m->id; });
    if (units.empty() || owner == p.members.end())
      continue;
    while (a.followers.size() < followers_max
           && choose.places(units) < wanted) {
      const auto place = choose.choose(units, **owner);
      if (!place)
        break;
      a.followers.push_back(*place);
    }
  }
  std::ranges::sort(a.followers, {}, [](const holder_place& f) {
    return std::tuple(f.first_unit, f.where);
  });
  choose_copy_every(a, p);
}

std::map<member_id, std::uint64_t>
copy_bytes(const job_entry& job, const island_place& a) {
  std::map<member_id, std::uint64_t> out;
  add_arrival_bytes(job, a, out);
  if (a.followers.empty())
    return out;
  if (a.copy_every <= 1) {
    for (const holder_place& f : a.followers)
      out[f.where.member] += state_bytes(job, {f.first_unit, f.last_unit});
    return out;
  }
  // The newest copies and those before them; a detour computes some twice.
  const auto add = [&](const member_id& who, const part_range& parts) {
    out[who] += 2 * copied_bytes(job, parts);
  };
  for (const holder_place& f : a.followers)
    add(f.where.member, {f.first_unit, f.last_unit});
  for (const replica_place& r : a.replicas)
    for (const stage_place& s : r.stages)
      add(s.lead(),
          parts_of_stage(s, &s == &r.stages.front(), &s == &r.stages.back()));
  return out;
}

} // namespace shoal::core
