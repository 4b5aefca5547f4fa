// runtime/core/planning/arrivals.cpp -- what may move while the job goes on.
#include "runtime/core/planning/arrivals.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/planning/detours.hpp"
#include "runtime/core/planning/followers.hpp"
#include "runtime/core/planning/layout/layout.hpp"
#include "runtime/core/planning/plan.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace shoal::core {
namespace {

using units_by_member = std::map<member_id, std::set<std::uint32_t>>;

void add_stages(const island_place& a, units_by_member& to) {
  for (std::uint32_t r = 0; r < a.replicas.size(); ++r)
    for (std::uint32_t s = 0; s < a.replicas[r].stages.size(); ++s) {
      const unit_range units = units_of(a, r, s);
      for (std::uint32_t u = units.first; u < units.last; ++u)
        to[a.replicas[r].stages[s].where].insert(u);
    }
}

void add_places(const std::vector<follower_place>& places,
                units_by_member& to) {
  for (const follower_place& f : places)
    for (std::uint32_t u = f.first_unit; u < f.last_unit; ++u)
      to[f.where].insert(u);
}

/// What members hold at every step under `a`.
units_by_member held_under(const island_place& a) {
  units_by_member out;
  add_stages(a, out);
  if (a.copy_every <= 1)
    add_places(a.followers, out);
  return out;
}

units_by_member without(units_by_member all, const units_by_member& held) {
  for (auto& [who, units] : all)
    if (const auto at = held.find(who); at != held.end())
      for (std::uint32_t u : at->second)
        units.erase(u);
  std::erase_if(all, [](const auto& of) { return of.second.empty(); });
  return all;
}

const stage_place& source_of(const island_place& place, std::uint32_t unit,
                             std::uint32_t replica) {
  const auto& stages = place.replicas.at(replica).stages;
  for (std::uint32_t s = 0; s < stages.size(); ++s)
    if (unit < units_of(place, replica, s).last)
      return stages[s];
  return stages.back();
}

const stage_place& source_of(const island_place& place, std::uint32_t unit) {
  return source_of(place, unit, unit % std::uint32_t(place.replicas.size()));
}

/// The units as runs of consecutive ones; a run ends with a stage of replica 0.
std::vector<follower_place>
as_places(const units_by_member& all, const island_place& a) {
  std::vector<follower_place> out;
  for (const auto& [who, units] : all)
    for (std::uint32_t u : units) {
      const bool goes_on = !out.empty() && out.back().where == who
                           && out.back().last_unit == u
                           && source_of(a, u, 0) == source_of(a, u - 1, 0);
      if (goes_on)
        ++out.back().last_unit;
      else
        out.push_back({who, u, u + 1});
    }
  std::ranges::sort(out, {}, [](const follower_place& f) {
    return std::tuple(f.first_unit, f.where);
  });
  return out;
}

/// The longest time for which one member sends or receives: three quarters of a
/// unit's bytes are its parameters and moments.
nanoseconds time_of(const units_by_member& moves, const island_place& from,
                    const layout_problem& p) {
  const cost_model model(p);
  const auto index_of = [&](const peer_id& id) {
    return cost_model::index(
      std::ranges::find(p.members, id,
                        [](const member* m) { return m->id.peer; })
      - p.members.begin());
  };
  std::vector<std::uint64_t> took(p.members.size() + 1);
  for (const auto& [who, units] : moves)
    for (std::uint32_t u : units) {
      const auto to = index_of(who.peer);
      const auto sender = index_of(arrival_source(from, u));
      const std::uint64_t bytes = bytes_of_units(p.job, u, u + 1) / 4 * 3;
      std::uint64_t speed = move_bytes_per_s_max;
      if (to < p.members.size() && sender < p.members.size() && to != sender)
        speed = std::min(speed, model.between(sender, to).bytes_per_s);
      const std::uint64_t ns =
        muldiv(bytes, 1'000'000'000, std::max<std::uint64_t>(speed, 1));
      took[to] = std::min(took[to] + ns, cost_never);
      if (sender != to)
        took[sender] = std::min(took[sender] + ns, cost_never);
    }
  return nanoseconds(*std::ranges::max_element(took));
}

bool long_move(const units_by_member& moves, const island_place& base,
               const layout_problem& p) {
  return !moves.empty() && worth_arriving(time_of(moves, base, p));
}

bool able(const layout_problem& p, const member_id& id) {
  return std::ranges::any_of(p.members,
                             [&](const member* m) { return m->id == id; });
}

/// a.followers without the units that they run themselves.
std::vector<follower_place> without_runners(const island_place& a) {
  units_by_member runs, follows;
  add_stages(a, runs);
  add_places(a.followers, follows);
  return as_places(without(std::move(follows), runs), a);
}

/// The former layout, made whole, with what the chosen one lacks as arrivals.
std::optional<island_place>
keep_layout(const island_place& chosen, const layout_problem& p,
            const units_by_member& held, std::vector<replica_place> before) {
  const island_place& was = *p.previous;
  island_place out = chosen;
  out.replicas = std::move(before);
  out.schedule = was.schedule;
  out.copy_every = was.copy_every;
  out.followers = was.followers;
  std::erase_if(out.followers,
                [&](const follower_place& f) { return !able(p, f.where); });
  if (out.replicas != was.replicas)
    out.followers = without_runners(out);
  units_by_member needs;
  add_stages(chosen, needs);
  if (!long_move(without(needs, held), out, p))
    return std::nullopt;
  if (chosen.copy_every <= 1)
    add_places(chosen.followers, needs);
  out.arriving = as_places(without(std::move(needs), held), out);
  if (out.arriving.size() > followers_max || !fits_memory(out, p))
    return std::nullopt;
  return out;
}

/// The replicas with stages that keep as few microbatches as possible.
std::vector<replica_place> keeping_least(std::vector<replica_place> replicas) {
  for (replica_place& r : replicas)
    for (stage_place& s : r.stages)
      s.kept_max = 1;
  return replicas;
}

/// The chosen layout without the followers that need state first.
std::optional<island_place>
delay_followers(const island_place& chosen, const layout_problem& p,
                const units_by_member& held) {
  if (chosen.copy_every > 1) // their copies come while the run goes on
    return std::nullopt;
  island_place out = chosen;
  out.followers.clear();
  units_by_member needs;
  add_places(chosen.followers, needs);
  const units_by_member moves = without(needs, held);
  if (!long_move(moves, out, p))
    return std::nullopt;
  out.followers = as_places(without(needs, moves), out);
  out.arriving = as_places(moves, out);
  if (out.followers.size() > followers_max
      || out.arriving.size() > followers_max || !fits_memory(out, p))
    return std::nullopt;
  return out;
}

} // namespace

bool keeps_arriving(const layout_problem& p) {
  if (!p.previous || p.previous->arriving.empty() || has_arrived(p)
      || is_retried(p))
    return false;
  const island_place& was = *p.previous;
  units_by_member places;
  add_stages(was, places);
  add_places(was.followers, places);
  add_places(was.arriving, places);
  const bool gone = std::ranges::any_of(
    places, [&](const auto& of) { return !able(p, of.first); });
  const bool came = std::ranges::any_of(
    p.members, [&](const member* m) { return m->id.incarnation > was.since; });
  return !gone && !came && fits_memory(was, p);
}

bool let_arrive(island_place& a, const layout_problem& p) {
  a.arriving.clear();
  if (!p.previous || p.previous->replicas.empty() || a.replicas.empty()
      || has_arrived(p))
    return false;
  const units_by_member held = held_under(*p.previous);
  std::optional<island_place> instead;
  const auto before = detour(p); // the former layout, if no member is gone
  if (!before.empty() && a.replicas != before) {
    instead = keep_layout(a, p, held, before);
    if (!instead && before != p.previous->replicas)
      instead = keep_layout(a, p, held, keeping_least(before));
  }
  if (!instead)
    instead = delay_followers(a, p, held);
  if (!instead)
    return false;
  a = std::move(*instead);
  return true;
}

std::vector<std::uint32_t>
arriving_units(const island_place& place, const peer_id& peer) {
  std::set<std::uint32_t> out;
  for (const follower_place& f : place.arriving)
    if (f.where.peer == peer)
      for (std::uint32_t u = f.first_unit; u < f.last_unit; ++u)
        out.insert(u);
  return {out.begin(), out.end()};
}

std::vector<peer_id> receivers(const island_place& place) {
  std::set<peer_id> out;
  for (const follower_place& f : place.arriving)
    out.insert(f.where.peer);
  return {out.begin(), out.end()};
}

const peer_id& arrival_source(const island_place& place, std::uint32_t unit) {
  SHOAL_ASSERT(!place.replicas.empty());
  return source_of(place, unit).where.peer;
}

std::uint32_t places_of(const island_place& place, std::uint32_t unit) {
  units_by_member held = held_under(place);
  return std::uint32_t(std::ranges::count_if(
    held, [&](const auto& of) { return of.second.contains(unit); }));
}

arrival_pieces pieces_of(std::uint64_t bytes) {
  const std::uint64_t least =
    (bytes + arrival_pieces_max - 1) / arrival_pieces_max;
  const std::uint64_t one =
    std::max(arrival_piece_bytes, (least + 63) / 64 * 64); // whole cache lines
  return {one, std::uint32_t((bytes + one - 1) / one)};
}

nanoseconds
rest_after_piece(nanoseconds took, nanoseconds step, std::uint32_t count) {
  if (took <= 0 || step <= 0 || count == 0)
    return 0;
  const std::uint64_t all =
    muldiv(std::uint64_t(took), 1000, arrival_permille_max);
  const std::uint64_t turn =
    std::uint64_t(step) / count * (arrival_backlog_max / 2);
  const std::uint64_t of_piece = std::min(all, turn);
  return of_piece > std::uint64_t(took) ? nanoseconds(of_piece) - took : 0;
}

void add_arrival_bytes(const job_entry& job, const island_place& a,
                       std::map<member_id, std::uint64_t>& to) {
  if (a.replicas.empty())
    return;
  std::map<member_id, std::uint64_t> largest; // the largest unit at either end
  for (const follower_place& f : a.arriving)
    for (std::uint32_t u = f.first_unit; u < f.last_unit; ++u) {
      const std::uint64_t bytes = bytes_of_units(job, u, u + 1);
      to[f.where] += bytes;
      largest[f.where] = std::max(largest[f.where], bytes);
      const member_id& source = source_of(a, u).where;
      to[source] += bytes / 4; // gradients in transit
      largest[source] = std::max(largest[source], bytes);
    }
  // The copy, and the gradients of the steps during its transfer.
  for (const auto& [who, bytes] : largest)
    to[who] += arrivals_at_once * (bytes / 4 * (3 + arrival_backlog_max));
}

} // namespace shoal::core
