// runtime/core/training/resume.cpp -- conclusions from a set of seals or votes.
#include "runtime/core/training/resume.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/state/holdings.hpp"
#include "runtime/core/state/parts.hpp"
#include "runtime/core/training/ledger.hpp"
#include "runtime/core/training/shards.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

namespace shoal::core {
namespace {

/// For each unit and version: the peers that can be at that version.
using reach = std::vector<std::map<state_version, std::set<peer_id>>>;

bool knows(const step_record& r, const state_version& v) {
  return r.version == v && r.replicas > 0;
}

/// Norm and loss of a version: from a peer that committed it, or from the votes
/// of peers that prepared it.
std::optional<step_record>
record_of(const state_version& v, const island_place& place,
          std::uint32_t blocks, const std::map<peer_id, seal>& seals) {
  std::vector<const vote*> votes;
  for (auto& [peer, s] : seals) {
    if (knows(s.last, v))
      return s.last;
    if (s.prepared == v)
      votes.push_back(&s.prepared_vote);
  }
  std::uint32_t microbatches = 0;
  for (const replica_place& r : place.replicas)
    microbatches = std::max(microbatches, r.last_microbatch);
  std::optional<step_record> r = tally(votes, blocks, microbatches);
  if (r)
    r->version = v;
  return r;
}

reach reachable(const island_place& place, std::uint32_t blocks,
                const std::map<peer_id, seal>& seals) {
  reach out(part_table(blocks).count());
  std::map<state_version, bool> can_apply;
  for (auto& [peer, s] : seals) {
    if (s.prepared.step > 0 && !can_apply.contains(s.prepared))
      can_apply[s.prepared] =
        record_of(s.prepared, place, blocks, seals).has_value();
    for (const held_unit& u : s.units) {
      if (u.unit >= out.size())
        continue;
      out[u.unit][u.applied].insert(peer);
      if (u.prepared && u.applied.step + 1 == s.prepared.step
          && can_apply[s.prepared])
        out[u.unit][s.prepared].insert(peer);
    }
    for (const unit_copy& c : s.copies)
      if (c.unit < out.size())
        out[c.unit][c.version].insert(peer);
  }
  return out;
}

/// Whether the run has gone back behind the version and gone on: a peer that was
/// stopped meanwhile may still hold it. @param last the newest committed one
bool is_left_behind(const state_version& v, const state_version& last) {
  return v.step > last.step && age(v) < age(last);
}

/// The newest version with a copy of every unit on some peer.
std::optional<state_version>
newest_copies(std::uint32_t blocks, const state_version& last,
              const std::map<peer_id, seal>& seals) {
  const part_range all = part_table(blocks).all();
  std::map<state_version, part_set> units;
  for (auto& [peer, s] : seals)
    for (const unit_copy& c : s.copies)
      units[c.version].add(c.unit);
  for (auto at = units.rbegin(); at != units.rend(); ++at)
    if (at->second.count(all) == all.size() && !is_left_behind(at->first, last))
      return at->first;
  return std::nullopt;
}

/// The newest version that every unit can be at.
std::optional<state_version>
newest_complete(const reach& r, const state_version& last) {
  for (auto at = r.front().rbegin(); at != r.front().rend(); ++at)
    if (!is_left_behind(at->first, last)
        && std::ranges::all_of(
          r, [&](const auto& unit) { return unit.contains(at->first); }))
      return at->first;
  return std::nullopt;
}

/// Whether the unit is at the version, or has gradients that lead to it; a copy
/// of the version does not count.
bool goes_on(const held_unit& u, const seal& s, const state_version& v) {
  return u.applied == v
         || (u.prepared && s.prepared == v && u.applied.step + 1 == v.step);
}

/// Among the peers that go on at the version, removes those whose state of a
/// unit differs from most; in a tie, from the state that the lowest peer id
/// has.
void leave_out_differing(resume_decision& d, reach& r,
                         const std::map<peer_id, seal>& seals) {
  // By unit, version and digest; the peers ascending.
  std::map<std::pair<std::uint32_t, state_version>,
           std::map<std::uint64_t, std::vector<peer_id>>>
    told;
  for (auto& [peer, s] : seals)
    for (const held_unit& u : s.units)
      if (u.unit < r.size() && u.hashed.made > 0 && goes_on(u, s, d.version)
          && r[u.unit].at(d.version).contains(peer))
        told[{u.unit, u.hashed}][u.digest].push_back(peer);
  for (auto& [what, by_digest] : told) {
    const auto right =
      std::ranges::max_element(by_digest, [](const auto& a, const auto& b) {
        return std::pair(a.second.size(), b.second.front())
               < std::pair(b.second.size(), a.second.front());
      });
    for (auto& [digest, peers] : by_digest)
      for (const peer_id& p : peers)
        if (digest != right->first) {
          r[what.first].at(d.version).erase(p);
          d.differing.push_back({what.first, what.second.step, p});
        }
  }
}

/// Spreads the transfers over the peers that can serve, the least busy first.
void plan_transfers(resume_decision& d, const holdings& h, const reach& r) {
  std::map<peer_id, std::size_t> busy;
  for (const member_parts& m : h.members())
    for (const part_index unit : m.held) {
      const peer_id& to = m.where.peer;
      const std::set<peer_id>& at = r[unit].at(d.version);
      if (at.contains(to))
        continue;
      peer_id from = *std::ranges::min_element(
        at, {}, [&](const peer_id& p) { return busy[p]; });
      ++busy[from];
      d.transfers.push_back({unit, from, to});
    }
}

/// Arriving units go on at the version where they can.
void find_in_step(resume_decision& d, const island_place& place, const reach& r,
                  const std::map<peer_id, seal>& seals) {
  for (const holder_place& f : place.arriving) {
    const auto at = seals.find(f.where.member.peer);
    if (at == seals.end())
      continue;
    const seal& s = at->second;
    for (const held_unit& u : s.units)
      if (part_range{f.first_unit, f.last_unit}.contains(u.unit)
          && goes_on(u, s, d.version)
          && r[u.unit].at(d.version).contains(f.where.member.peer))
        d.in_step.push_back({u.unit, f.where.member.peer});
  }
}

bool exists(const checkpoint_ref& c) {
  return c.manifest != blob_digest{};
}

/// By manifest, as a checkpoint may have been reported under several
/// assignments: what the stores with parts of it lack.
using stores_of = std::map<blob_digest, std::vector<part_set>>;

stores_of
all_stores(const part_set& parts, const std::map<peer_id, seal>& seals) {
  stores_of out;
  for (const auto& [peer, s] : seals) {
    std::map<blob_digest, part_set> lacks; // of this store
    for (const stored_checkpoint& c : s.stored) {
      part_set has = parts;
      has.remove(part_set(c.lacks));
      if (exists(c.checkpoint))
        lacks.try_emplace(c.checkpoint.manifest, parts)
          .first->second.remove(has);
    }
    for (const auto& [manifest, parts] : lacks)
      out[manifest].push_back(parts);
  }
  return out;
}

/// The newest committed step in any seal. Records of later assignments are
/// newer, even if a loss has set the steps back.
state_version newest_known(const std::map<peer_id, seal>& seals) {
  state_version last;
  for (auto& [peer, s] : seals)
    for (const state_version& v : {s.last.version, s.known})
      if (age(v) > age(last))
        last = v;
  return last;
}

/// Chooses the state to go on from: d.from, d.version and d.checkpoint.
/// @param whole whether all parts of a checkpoint are in stores here
void choose(resume_decision& d, const island_place& place,
            std::uint64_t origin_step, std::uint64_t interval,
            const std::optional<state_version>& live,
            const std::map<peer_id, seal>& seals,
            const std::function<bool(const blob_digest&)>& whole) {
  std::set<checkpoint_ref> held, heard;
  const auto credible = [&](const checkpoint_ref& c) {
    return exists(c) && c.step <= d.last && !is_given_up(c, d.given_up);
  };
  for (auto& [peer, s] : seals) {
    for (const stored_checkpoint& c : s.stored)
      if (credible(c.checkpoint) && whole(c.checkpoint.manifest))
        held.insert(c.checkpoint);
    std::ranges::copy_if(s.heard, std::inserter(heard, heard.end()), credible);
  }
  heard.insert(held.begin(), held.end());
  d.heard.assign(heard.begin(), heard.end());
  using source = resume_decision::source;
  const auto best = [&](source& from, checkpoint_ref& checkpoint) {
    checkpoint = held.empty() ? checkpoint_ref{} : *held.rbegin();
    const bool saved = !held.empty();
    if (live && !(saved && checkpoint.step > live->step)) {
      from = source::live;
      return live->step;
    }
    from = saved ? source::checkpoint : source::origin;
    return saved ? checkpoint.step : origin_step;
  };
  const auto costs = [&](source from, std::uint64_t step) {
    d.otherwise = step;
    return from == source::origin || d.top > step + interval;
  };
  const std::uint64_t reached = best(d.from, d.checkpoint);
  d.costly = costs(d.from, reached);
  const checkpoint_ref newest =
    heard.empty() ? checkpoint_ref{} : *heard.rbegin();
  const bool absent =
    exists(newest) && std::ranges::none_of(held, [&](const checkpoint_ref& c) {
      return c.manifest == newest.manifest;
    });
  if (absent && newest.step > reached && d.costly) {
    d.from = source::checkpoint;
    d.checkpoint = newest;
  } else if (d.from == source::checkpoint) {
    held.erase(d.checkpoint);
    source from{};
    checkpoint_ref before;
    const std::uint64_t step = best(from, before);
    d.costly = costs(from, step);
  }
  d.version = d.from == source::live ? *live
              : d.from == source::checkpoint
                ? state_version{d.checkpoint.step, place.since}
                : state_version{origin_step, place.since};
}

} // namespace

bool is_given_up(const checkpoint_ref& c,
                 const std::vector<checkpoint_ref>& given_up) {
  return std::ranges::any_of(given_up, [&](const checkpoint_ref& g) {
    return g.manifest == c.manifest && g.since >= c.since;
  });
}

const job_header& header(const job_message& m) {
  return std::visit([](const auto& x) -> const job_header& { return x.header; },
                    m);
}

std::optional<step_record>
tally(const std::vector<const vote*>& votes, std::uint32_t blocks,
      std::uint32_t microbatches) {
  std::vector<const unit_square*> squares(part_table(blocks).count());
  const vote* head = nullptr; // the vote of a last stage
  for (const vote* v : votes) {
    for (const unit_square& u : v->units)
      if (u.unit < squares.size() && !squares[u.unit])
        squares[u.unit] = &u;
    if (!head && v->losses.size() == microbatches)
      head = v;
  }
  if (!head || microbatches == 0
      || std::ranges::find(squares, nullptr) != squares.end())
    return std::nullopt;
  double square = 0;
  for (const unit_square* unit : squares)
    square += unit->sum;
  double loss = 0;
  for (double l : head->losses)
    loss += l;
  step_record r;
  r.loss = loss / microbatches;
  r.grad_norm = std::sqrt(square);
  r.replicas = 1; // the caller sets the number
  if (head->samples.size() == microbatches)
    r.data = digest_of_step(head->samples);
  r.bad = std::isfinite(r.loss) && std::isfinite(r.grad_norm)
            ? 0
            : std::min(head->bad_before + 1, bad_steps_max);
  return r;
}

double applied_norm(const step_record& r) {
  return r.bad == 0 ? r.grad_norm : std::numeric_limits<double>::quiet_NaN();
}

std::uint32_t bubble_permille(const std::vector<const vote*>& votes) {
  // Peers begin a step when they have the last vote of the step before, so
  // their clocks need not agree.
  __extension__ using wide = unsigned __int128;
  wide busy = 0, longest = 0, peers = 0;
  for (const vote* v : votes) {
    if (v->elapsed <= 0)
      continue;
    busy += wide(std::clamp<nanoseconds>(v->busy, 0, v->elapsed));
    longest = std::max(longest, wide(v->elapsed));
    ++peers;
  }
  return peers == 0 ? 0 : std::uint32_t(1000 - 1000 * busy / (longest * peers));
}

resume_decision decide_resume(const island_place& place, std::uint32_t blocks,
                              std::uint64_t origin_step, std::uint64_t interval,
                              const std::map<peer_id, seal>& seals) {
  SHOAL_ASSERT(!seals.empty());
  resume_decision d;
  reach r = reachable(place, blocks, seals);
  for (auto& [peer, s] : seals) {
    d.given_up.insert(d.given_up.end(), s.given_up.begin(), s.given_up.end());
    if (s.unable)
      d.unable.push_back(peer);
  }
  const state_version last = newest_known(seals);
  d.copies = newest_copies(blocks, last, seals);
  d.last = d.top = last.step;
  for (auto& [peer, s] : seals)
    d.top = std::max(d.top, s.top);
  const std::uint32_t parts = part_table(blocks).count();
  const stores_of stores = all_stores(part_set(part_range{0, parts}), seals);
  const auto in_stores = [&](const blob_digest& manifest, std::size_t count) {
    const auto at = stores.find(manifest);
    return at != stores.end() && everywhere(parts, count, at->second);
  };
  choose(d, place, origin_step, interval, newest_complete(r, last), seals,
         [&](const blob_digest& m) { return in_stores(m, 1); });
  if (d.from == resume_decision::source::live) {
    leave_out_differing(d, r, seals);
    plan_transfers(d, holdings(place), r);
    find_in_step(d, place, r, seals);
  }
  if (std::optional<step_record> known =
        record_of(d.version, place, blocks, seals)) {
    d.record = *known;
    d.known = true;
  }
  const bool saved = exists(d.checkpoint);
  const bool whole = saved && in_stores(d.checkpoint.manifest, 1);
  for (auto& [peer, s] : seals) {
    if (whole && std::ranges::any_of(s.stored, [&](const auto& c) {
          return c.checkpoint.manifest == d.checkpoint.manifest;
        }))
      d.checkpoint_holders.push_back(peer);
    d.stop = d.stop || s.stop_step > 0
             || (s.prepared == d.version && s.prepared_vote.drain);
    d.checkpoint_lag = std::max(d.checkpoint_lag, s.checkpoint_lag);
    d.evaluated = d.evaluated || s.evaluated > d.version.step;
  }
  // A checkpoint in a single store is made again: the bytes and the name are
  // equal.
  d.checkpointed = saved && d.checkpoint.step == d.version.step
                   && in_stores(d.checkpoint.manifest,
                                std::min<std::size_t>(2, place.keepers.size()));
  for (std::uint32_t u = 0; u < r.size(); ++u)
    if (!r[u].contains(last)) {
      d.lost_unit = u;
      break;
    }
  return d;
}

} // namespace shoal::core
