// runtime/core/planning/followers.cpp -- copies where there is memory.
#include "runtime/core/planning/followers.hpp"

#include "runtime/core/planning/arrivals.hpp"
#include "runtime/core/planning/detours.hpp"
#include "runtime/core/planning/layout/layout.hpp"
#include "runtime/core/planning/plan.hpp"

#include <algorithm>
#include <map>
#include <set>
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
    for (const member* m : members_) {
      hold(a, m->id.peer, now_[m->id]);
      if (!p.previous)
        continue;
      hold(*p.previous, m->id.peer, before_[m->id]);
      for (std::uint32_t u : arriving_units(*p.previous, m->id.peer))
        before_[m->id].insert(u); // do not move back what is on its way
    }
  }

  /// Smallest number of places among these units.
  std::uint32_t places(const unit_range& units) const {
    std::uint32_t least = std::uint32_t(members_.size());
    for (std::uint32_t u = units.first; u < units.last; ++u)
      least = std::min(
        least, std::uint32_t(std::ranges::count_if(now_, [&](const auto& held) {
          return held.second.contains(u);
        })));
    return least;
  }

  /// @returns nothing if no member has the memory
  std::optional<follower_place>
  choose(const unit_range& units, const member& owner) {
    const std::uint64_t bytes = bytes_of_units(job_, units.first, units.last);
    using rank =
      std::tuple<bool, bool, std::uint32_t, std::uint64_t, member_id>;
    std::optional<rank> best;
    for (const member* m : members_) {
      if (count(now_[m->id], units) > 0 || memory_[m->id.peer] < bytes)
        continue;
      const rank r{m->device.mflops < owner.device.mflops / follower_slower_max,
                   !m->host.empty() && m->host == owner.host,
                   units.last - units.first - count(before_[m->id], units),
                   loads_[m->id], m->id};
      if (!best || r < *best)
        best = r;
    }
    if (!best)
      return std::nullopt;
    const member_id& who = std::get<member_id>(*best);
    memory_[who.peer] -= bytes;
    loads_[who] += bytes;
    for (std::uint32_t u = units.first; u < units.last; ++u)
      now_[who].insert(u);
    return follower_place{who, units.first, units.last};
  }

private:
  using unit_set = std::set<std::uint32_t>;

  static void hold(const island_place& a, const peer_id& peer, unit_set& into) {
    for (const auto& units : {units_of(a, peer), followed_units(a, peer)})
      into.insert(units.begin(), units.end());
  }
  static std::uint32_t count(const unit_set& held, const unit_range& units) {
    return std::uint32_t(std::distance(held.lower_bound(units.first),
                                       held.lower_bound(units.last)));
  }

  const job_entry& job_;
  const std::vector<const member*>& members_;
  std::map<peer_id, std::uint64_t> memory_; ///< left
  std::map<member_id, std::uint64_t> loads_;
  std::map<member_id, unit_set> now_, before_;
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
  for (const follower_place& f : a.followers)
    for (std::uint32_t s = 0; s < stages.size(); ++s) {
      const unit_range units = units_of(a, 0, s);
      const std::uint64_t bytes =
        bytes_of_units(p.job, std::max(units.first, f.first_unit),
                       std::min(units.last, f.last_unit));
      if (bytes == 0)
        continue;
      const auto from = index_of(stages[s].where), to = index_of(f.where);
      // Gradients are a quarter of the state, parameters and moments three
      // quarters.
      const std::uint64_t sent =
        muldiv(bytes / 4, 1'000'000'000, model.between(from, to).bytes_per_s);
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
    const unit_range units = units_of(a, 0, s);
    const auto owner = std::ranges::find(p.members, stages[s].where,
                                         [](const member* m) { return m->id; });
    if (units.first == units.last || owner == p.members.end())
      continue;
    while (a.followers.size() < followers_max
           && choose.places(units) < wanted) {
      const auto place = choose.choose(units, **owner);
      if (!place)
        break;
      a.followers.push_back(*place);
    }
  }
  std::ranges::sort(a.followers, {}, [](const follower_place& f) {
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
    for (const follower_place& f : a.followers)
      out[f.where] += bytes_of_units(job, f.first_unit, f.last_unit);
    return out;
  }
  // The newest copies and those before them, without gradients.
  auto add = [&](const member_id& who, std::uint32_t first,
                 std::uint32_t last) {
    out[who] += 2 * (bytes_of_units(job, first, last) / 4 * 3);
  };
  for (const follower_place& f : a.followers)
    add(f.where, f.first_unit, f.last_unit);
  for (std::uint32_t r = 0; r < a.replicas.size(); ++r)
    for (std::uint32_t s = 0; s < a.replicas[r].stages.size(); ++s) {
      const unit_range units = units_of(a, r, s);
      add(a.replicas[r].stages[s].where, units.first, units.last);
    }
  return out;
}

std::uint64_t bytes_of_units(const job_entry& job, std::uint32_t first_unit,
                             std::uint32_t last_unit) {
  if (first_unit >= last_unit)
    return 0;
  const std::uint32_t head = job.blocks + 1;
  const bool embedding = first_unit == 0;
  const std::uint32_t blocks =
    std::min(last_unit, head) - std::max(first_unit, 1u);
  return std::min((embedding ? job.embed_state_bytes : 0)
                    + (last_unit > head ? job.head_state_bytes : 0)
                    + saturating_mul(blocks, job.block_state_bytes),
                  cost_never);
}

std::uint32_t holders_min(const island_place& a, std::uint32_t blocks) {
  std::vector<std::uint32_t> holders(std::size_t{blocks} + 2);
  for (const peer_id& p : participants(a)) {
    std::set<std::uint32_t> here;
    for (const auto& units : {units_of(a, p), followed_units(a, p)})
      here.insert(units.begin(), units.end());
    for (std::uint32_t u : here)
      if (u < holders.size())
        ++holders[u];
  }
  return *std::ranges::min_element(holders);
}

} // namespace shoal::core
