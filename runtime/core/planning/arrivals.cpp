// runtime/core/planning/arrivals.cpp -- what may move while the job goes on.
#include "runtime/core/planning/arrivals.hpp"

#include "runtime/core/planning/detours.hpp"
#include "runtime/core/planning/followers.hpp"
#include "runtime/core/planning/layout/layout.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/state/holdings.hpp"
#include "runtime/core/state/parts.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <tuple>

namespace shoal::core {
namespace {

using parts_by_member = std::map<member_id, part_set>;

parts_by_member computed(const holdings& h) {
  parts_by_member out;
  for (const member_parts& m : h.members())
    out[m.where] = m.computes;
  return out;
}

parts_by_member followed(const holdings& h) {
  parts_by_member out;
  for (const member_parts& m : h.members())
    out[m.where] = m.follows;
  return out;
}

/// What members hold at every step under `a`.
parts_by_member held(const holdings& h) {
  parts_by_member out;
  for (const member_parts& m : h.members())
    out[m.where] = m.held;
  return out;
}

parts_by_member without(parts_by_member all, const parts_by_member& held) {
  for (auto& [who, parts] : all)
    if (const auto at = held.find(who); at != held.end())
      parts.remove(at->second);
  std::erase_if(all, [](const auto& of) { return of.second.empty(); });
  return all;
}

/// The parts as runs of consecutive ones; a run ends with a stage of replica 0.
std::vector<holder_place>
as_places(const parts_by_member& all, const holdings& h) {
  std::vector<holder_place> out;
  for (const auto& [who, parts] : all)
    for (const part_index p : parts) {
      const bool goes_on = !out.empty() && out.back().where.member == who
                           && out.back().last_unit == p
                           && h.stage(0, p) == h.stage(0, p - 1);
      if (goes_on)
        ++out.back().last_unit;
      else
        out.push_back({who, p, p + 1});
    }
  std::ranges::sort(out, {}, [](const holder_place& f) {
    return std::tuple(f.first_unit, f.where);
  });
  return out;
}

/// The longest time for which one member sends or receives.
nanoseconds time_of(const parts_by_member& moves, const holdings& from,
                    const layout_problem& p) {
  const cost_model model(p);
  const auto index_of = [&](const member_id& id) {
    return cost_model::index(
      std::ranges::find(p.members, id.peer,
                        [](const member* m) { return m->id.peer; })
      - p.members.begin());
  };
  std::vector<std::uint64_t> took(p.members.size() + 1);
  for (const auto& [who, parts] : moves)
    for (const part_index u : parts) {
      const auto to = index_of(who);
      const auto sender = index_of(from.source(u));
      const std::uint64_t bytes = copied_bytes(p.job, {u, u + 1});
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

bool long_move(const parts_by_member& moves, const holdings& base,
               const layout_problem& p) {
  return !moves.empty() && worth_arriving(time_of(moves, base, p));
}

bool is_able(const layout_problem& p, const member_id& id) {
  return std::ranges::any_of(p.members,
                             [&](const member* m) { return m->id == id; });
}

/// a.followers without the units that they run themselves.
std::vector<holder_place> without_runners(const island_place& a) {
  const holdings h(a);
  return as_places(without(followed(h), computed(h)), h);
}

/// The former layout, made whole, with what the chosen one lacks as arrivals.
std::optional<island_place>
keep_layout(const island_place& chosen, const layout_problem& p,
            const parts_by_member& had, std::vector<replica_place> before) {
  const island_place& was = *p.previous;
  island_place out = chosen;
  out.replicas = std::move(before);
  out.schedule = was.schedule;
  out.copy_every = was.copy_every;
  out.followers = was.followers;
  std::erase_if(out.followers, [&](const holder_place& f) {
    return !is_able(p, f.where.member);
  });
  if (out.replicas != was.replicas)
    out.followers = without_runners(out);
  const holdings wanted(chosen), meanwhile(out);
  if (!long_move(without(computed(wanted), had), meanwhile, p))
    return std::nullopt;
  out.arriving = as_places(without(held(wanted), had), meanwhile);
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
                const parts_by_member& had) {
  if (chosen.copy_every > 1) // their copies come while the run goes on
    return std::nullopt;
  island_place out = chosen;
  out.followers.clear();
  const holdings meanwhile(out);
  const parts_by_member needs = followed(holdings(chosen));
  const parts_by_member moves = without(needs, had);
  if (!long_move(moves, meanwhile, p))
    return std::nullopt;
  out.followers = as_places(without(needs, moves), meanwhile);
  out.arriving = as_places(moves, meanwhile);
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
  const holdings h(was);
  const bool gone = std::ranges::any_of(
    h.members(), [&](const member_parts& m) { return !is_able(p, m.where); });
  const bool came = std::ranges::any_of(
    p.members, [&](const member* m) { return m->id.incarnation > was.since; });
  return !gone && !came && fits_memory(was, p);
}

bool let_arrive(island_place& a, const layout_problem& p) {
  a.arriving.clear();
  if (!p.previous || p.previous->replicas.empty() || a.replicas.empty()
      || has_arrived(p))
    return false;
  const parts_by_member had = held(holdings(*p.previous));
  std::optional<island_place> instead;
  const auto before = detour(p); // the former layout, if no member is gone
  if (!before.empty() && a.replicas != before) {
    instead = keep_layout(a, p, had, before);
    if (!instead && before != p.previous->replicas)
      instead = keep_layout(a, p, had, keeping_least(before));
  }
  if (!instead)
    instead = delay_followers(a, p, had);
  if (!instead)
    return false;
  a = std::move(*instead);
  return true;
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
  const holdings h(a);
  // Of the largest part at either end: the copy, and the gradients of the steps
  // during its transfer.
  std::map<member_id, std::uint64_t> largest;
  const auto note = [&](const member_id& who, const part_range& part) {
    std::uint64_t& most = largest[who];
    most = std::max(most, copied_bytes(job, part)
                            + arrival_backlog_max * gradient_bytes(job, part));
  };
  for (const member_parts& m : h.members())
    for (const part_index u : m.arrives) {
      const part_range part{u, u + 1};
      to[m.where] += state_bytes(job, part);
      note(m.where, part);
      to[h.source(u)] += gradient_bytes(job, part); // in transit
      note(h.source(u), part);
    }
  for (const auto& [who, bytes] : largest)
    to[who] += arrivals_at_once * bytes;
}

} // namespace shoal::core
