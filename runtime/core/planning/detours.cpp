// runtime/core/planning/detours.cpp -- stand-ins for dead stages.
#include "runtime/core/planning/detours.hpp"

#include "runtime/core/schedule/schedule_choice.hpp"
#include "runtime/core/state/holdings.hpp"
#include "runtime/core/state/parts.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>

namespace shoal::core {
namespace {

/// For each unit the members that can run it at once, ascending: those that run
/// it and are present; otherwise one that follows it.
using holders = std::vector<std::vector<member_id>>;

const member* able_member(const layout_problem& p, const member_id& id) {
  const auto at =
    std::ranges::find(p.members, id, [](const member* m) { return m->id; });
  return at == p.members.end() ? nullptr : *at;
}

holders holders_of(const layout_problem& p, const holdings& had) {
  const part_table parts(p.job.blocks);
  holders out(parts.count());
  for (const member_parts& m : had.members())
    if (able_member(p, m.where))
      for (const part_index u : m.computes)
        out[u].push_back(m.where);
  // Only one, so that one pipeline stays one: its sums then have the same bits.
  for (part_index u = 0; u < parts.count(); ++u) {
    if (!out[u].empty())
      continue;
    const member* best = nullptr;
    for (const member_id& f : had.followers(u)) {
      const member* m = able_member(p, f);
      if (m && had.of(f).held.contains(u) // else its copy lags behind
          && (!best || m->device.mflops > best->device.mflops))
        best = m;
    }
    if (best)
      out[u].push_back(best->id);
  }
  return out;
}

/// Adds a stage, or lengthens the stage before it if both belong to the same
/// member and one of them is a stand-in.
void add_stage(std::vector<stage_place>& to, const stage_place& s,
               bool stands_in, bool& before_stands_in) {
  if (!to.empty() && to.back().shards == s.shards
      && (stands_in || before_stands_in)) {
    to.back().last_block = s.last_block;
    to.back().kept_max = std::max(to.back().kept_max, s.kept_max);
    before_stands_in = true;
    return;
  }
  to.push_back(s);
  before_stands_in = stands_in;
}

/// The replica with stand-ins: combination `turn` of the possible ones.
replica_place replaced(const layout_problem& p, std::uint32_t replica,
                       const holders& at, std::uint32_t turn) {
  const replica_place& was = p.previous->replicas[replica];
  const part_table parts(p.job.blocks);
  replica_place out{{}, was.first_microbatch, was.last_microbatch};
  bool stood_in = false;
  for (std::uint32_t s = 0; s < was.stages.size(); ++s) {
    const stage_place& stage = was.stages[s];
    if (able_member(p, stage.lead())) {
      add_stage(out.stages, stage, false, stood_in);
      continue;
    }
    const part_range units =
      parts_of_stage(stage, s == 0, s + 1 == was.stages.size());
    for (std::uint32_t u = units.first; u < units.last;) {
      const std::uint32_t first = u;
      const member_id who = at[u][turn % at[u].size()];
      while (u < units.last && std::ranges::binary_search(at[u], who))
        ++u;
      const auto blocks = parts.blocks_of({first, u});
      add_stage(out.stages,
                stage_on(who, blocks.first, blocks.last, stage.kept_max), true,
                stood_in);
    }
  }
  return out;
}

/// The number of combinations of stand-ins; 0: none.
std::uint32_t
ways(const layout_problem& p, std::uint32_t replica, const holders& at) {
  const auto& stages = p.previous->replicas[replica].stages;
  std::size_t most = 1;
  for (std::uint32_t s = 0; s < stages.size(); ++s) {
    if (able_member(p, stages[s].lead()))
      continue;
    const part_range units =
      parts_of_stage(stages[s], s == 0, s + 1 == stages.size());
    for (std::uint32_t u = units.first; u < units.last; ++u) {
      if (at[u].empty())
        return 0;
      most = std::max(most, at[u].size());
    }
  }
  return std::uint32_t(most);
}

bool same_stages(const replica_place& a, const replica_place& b) {
  return std::ranges::equal(
    a.stages, b.stages, [](const stage_place& x, const stage_place& y) {
      return x.shards == y.shards && x.first_block == y.first_block
             && x.last_block == y.last_block;
    });
}

/// Deals the microbatches out to all replicas, one at least to each.
void deal(const layout_problem& p, std::vector<replica_place>& replicas) {
  cost_model model(p);
  auto places = model.indexed(replicas);
  if (!places)
    return;
  model.use(*places);
  const auto count = std::uint32_t(places->size());
  std::vector<std::uint64_t> busy(model.size());
  std::vector<std::uint32_t> dealt(count);
  /// The load of the replica's busiest member with one more portion.
  auto give = [&](std::uint32_t r, std::uint32_t portion, auto&& each) {
    const auto& stages = (*places)[r].stages;
    std::uint64_t most = 0;
    std::map<cost_model::index, std::uint64_t> more;
    for (const cost_model::stage& s : stages) {
      const auto pace = model.pace_of(s.who);
      const std::uint64_t once = saturating_mul(pace.block, s.last - s.first)
                                 + (&s == &stages.back() ? pace.head : 0);
      std::uint64_t& all = more[s.who];
      all = std::min(all + saturating_mul(once, portion), cost_never);
    }
    for (const auto& [who, ns] : more) {
      const std::uint64_t then = std::min(busy[who] + ns, cost_never);
      most = std::max(most, then);
      each(who, then);
    }
    return most;
  };
  const std::uint32_t all = p.job.microbatches;
  const std::uint32_t portion = (all + deals_max - 1) / deals_max;
  std::uint32_t left = all;
  auto take = [&](std::uint32_t r, std::uint32_t n) {
    give(r, n,
         [&](cost_model::index who, std::uint64_t then) { busy[who] = then; });
    dealt[r] += n;
    left -= n;
  };
  for (std::uint32_t r = 0; r < count; ++r)
    take(r, 1);
  while (left > 0) {
    const std::uint32_t n = std::min(portion, left);
    std::pair<std::uint64_t, std::uint32_t> best{~std::uint64_t{0}, 0};
    std::uint32_t to = 0;
    for (std::uint32_t r = 0; r < count; ++r)
      if (const std::pair rank{give(r, n, [](auto, auto) {}), dealt[r]};
          rank < best) {
        best = rank;
        to = r;
      }
    take(to, n);
  }
  std::uint32_t next = 0;
  for (std::uint32_t r = 0; r < count; ++r) {
    replicas[r].first_microbatch = next;
    next += dealt[r];
    replicas[r].last_microbatch = next;
  }
}

} // namespace

bool runs_all(const job_entry& job,
              const std::vector<replica_place>& replicas) {
  std::uint32_t next = 0;
  for (const replica_place& r : replicas) {
    if (r.stages.empty() || r.first_microbatch != next
        || r.last_microbatch <= next)
      return false;
    next = r.last_microbatch;
    std::uint32_t block = 0;
    for (const stage_place& s : r.stages) {
      if (s.first_block != block || s.last_block < block)
        return false;
      block = s.last_block;
    }
    if (block != job.blocks)
      return false;
  }
  return next == job.microbatches;
}

bool is_sound(const job_entry& job, const island_place& a) {
  const auto units = [&](const holder_place& f) {
    return f.first_unit <= f.last_unit
           && f.last_unit <= part_table(job.blocks).count();
  };
  const auto stage = [&](const stage_place& s) {
    return s.first_block <= s.last_block && s.last_block <= job.blocks;
  };
  const auto replica = [&](const replica_place& r) {
    return !r.stages.empty() && std::ranges::all_of(r.stages, stage)
           && r.first_microbatch <= r.last_microbatch
           && r.last_microbatch <= job.microbatches;
  };
  return std::ranges::all_of(a.replicas, replica)
         && std::ranges::all_of(a.followers, units)
         && std::ranges::all_of(a.arriving, units)
         && (a.arriving.empty() || runs_all(job, a.replicas));
}

bool is_sound(const job_entry& job, const assignment& a) {
  // A served model gets more pipelines and fewer with its load.
  const bool sized = job.kind == job_kind::serve
                       ? !a.islands.empty()
                       : a.islands.size() == job.want_islands;
  return sized && std::ranges::all_of(a.islands, [&](const island_place& at) {
           return is_sound(job, at);
         });
}

std::vector<replica_place> detour(const layout_problem& p) {
  if (!p.previous || !runs_all(p.job, p.previous->replicas))
    return {};
  const auto& before = p.previous->replicas;
  const holders at = holders_of(p, holdings(*p.previous));
  std::vector<replica_place> out, others;
  bool changed = false;
  for (std::uint32_t r = 0; r < before.size(); ++r) {
    const bool whole =
      std::ranges::all_of(before[r].stages, [&](const stage_place& s) {
        return able_member(p, s.lead());
      });
    if (whole) {
      out.push_back(before[r]);
      continue;
    }
    changed = true;
    const std::uint32_t n = ways(p, r, at);
    if (n == 0)
      return {};
    for (std::uint32_t turn = 0; turn < n; ++turn)
      (turn == 0 ? out : others).push_back(replaced(p, r, at, turn));
  }
  if (!changed)
    return out;
  // At least one replica for each original; more where work can be shared.
  const std::size_t most = std::min<std::size_t>(
    p.job.microbatches, std::max(before.size(), detour_replicas_max));
  std::vector<replica_place> distinct;
  for (auto* some : {&out, &others})
    for (replica_place& r : *some)
      if (distinct.size() < most
          && std::ranges::none_of(distinct, [&](const replica_place& d) {
               return same_stages(d, r);
             }))
        distinct.push_back(std::move(r));
  for (const replica_place& r : distinct)
    if (r.stages.size() > pipeline_stages_max)
      return {}; // more than an assignment can express
  deal(p, distinct);
  return distinct;
}

bool makes_detour(const std::vector<replica_place>& replicas) {
  return holdings(replicas).computes_twice();
}

std::uint32_t replica_count(const std::vector<replica_place>& replicas) {
  return holdings(replicas).most_computers();
}

} // namespace shoal::core
