// runtime/core/state/holdings.cpp -- from stages and runs to members and parts.
#include "runtime/core/state/holdings.hpp"

#include "runtime/core/assert.hpp"

#include <algorithm>
#include <map>

namespace shoal::core {

holdings::holdings(const island_place& place) {
  add_stages(place.replicas);
  for (const holder_place& f : place.followers) {
    const part_range parts{f.first_unit, f.last_unit};
    member_parts& m = at(f.where.member);
    m.takes_part = true;
    m.follows.add(parts);
    followers_.push_back({parts, f.where.member});
  }
  for (const holder_place& f : place.arriving)
    at(f.where.member).arrives.add(part_range{f.first_unit, f.last_unit});
  finish(place.copy_every <= 1);
}

holdings::holdings(const std::vector<replica_place>& replicas) {
  add_stages(replicas);
  finish(false);
}

void holdings::add_stages(const std::vector<replica_place>& replicas) {
  for (const replica_place& r : replicas) {
    std::vector<run>& runs = replicas_.emplace_back();
    for (const stage_place& s : r.stages) {
      const part_range parts =
        parts_of_stage(s, &s == &r.stages.front(), &s == &r.stages.back());
      for (const shard_place& shard : s.shards) {
        member_parts& m = at(shard.where.member);
        m.takes_part = true;
        twice_ = twice_ || m.computes.overlaps(parts);
        m.computes.add(parts);
      }
      runs.push_back({parts.last, s.lead()});
    }
  }
}

/// The entry of a member, which may be new.
member_parts& holdings::at(const member_id& who) {
  const auto to =
    std::ranges::lower_bound(members_, who, {}, &member_parts::where);
  if (to != members_.end() && to->where == who)
    return *to;
  return *members_.insert(to, {who, {}, {}, {}, {}, false});
}

void holdings::finish(bool by_gradients) {
  for (member_parts& m : members_) {
    m.held = m.computes;
    if (by_gradients)
      m.held.add(m.follows);
  }
}

const member_parts& holdings::of(const member_id& who) const {
  static const member_parts none;
  const auto to =
    std::ranges::lower_bound(members_, who, {}, &member_parts::where);
  return to != members_.end() && to->where == who ? *to : none;
}

const member_parts& holdings::of(const peer_id& peer) const {
  static const member_parts none;
  const auto to = std::ranges::lower_bound(
    members_, peer, {}, [](const member_parts& m) { return m.where.peer; });
  return to != members_.end() && to->where.peer == peer ? *to : none;
}

std::vector<peer_id> holdings::participants() const {
  std::vector<peer_id> out;
  for (const member_parts& m : members_)
    if (m.takes_part)
      out.push_back(m.where.peer);
  return out;
}

std::vector<peer_id> holdings::receivers() const {
  std::vector<peer_id> out;
  for (const member_parts& m : members_)
    if (!m.arrives.empty())
      out.push_back(m.where.peer);
  return out;
}

std::uint32_t holdings::stage(std::uint32_t replica, part_index part) const {
  const std::vector<run>& runs = replicas_.at(replica);
  const auto to =
    std::ranges::find_if(runs, [&](const run& r) { return part < r.last; });
  SHOAL_ASSERT(to != runs.end());
  return std::uint32_t(to - runs.begin());
}

const member_id&
holdings::computer(std::uint32_t replica, part_index part) const {
  return replicas_[replica][stage(replica, part)].who;
}

std::vector<peer_id> holdings::computers(part_index part) const {
  std::vector<peer_id> out;
  for (std::uint32_t r = 0; r < replicas_.size(); ++r)
    if (const peer_id& peer = computer(r, part).peer;
        std::ranges::find(out, peer) == out.end())
      out.push_back(peer);
  return out;
}

std::uint32_t
holdings::first_replica(const peer_id& peer, part_index part) const {
  std::uint32_t r = 0;
  while (computer(r, part).peer != peer)
    ++r;
  return r;
}

std::vector<member_id> holdings::followers(part_index part) const {
  std::vector<member_id> out;
  for (const follower& f : followers_)
    if (f.parts.contains(part))
      out.push_back(f.who);
  return out;
}

const member_id& holdings::source(part_index part) const {
  SHOAL_ASSERT(!replicas_.empty());
  return computer(part % std::uint32_t(replicas_.size()), part);
}

std::uint32_t holdings::holders(part_index part) const {
  return std::uint32_t(std::ranges::count_if(
    members_, [&](const member_parts& m) { return m.held.contains(part); }));
}

namespace {

/// Where the number of members changes that have a part, and by how many.
using changes = std::map<part_index, std::int32_t>;

void add(changes& to, const part_set& parts) {
  for (const part_range& r : parts.runs()) {
    ++to[r.first];
    --to[r.last];
  }
}

} // namespace

std::uint32_t holdings::least_copies(const part_table& parts) const {
  changes change{{0, 0}};
  for (const member_parts& m : members_) {
    part_set all = m.computes;
    all.add(m.follows);
    add(change, all);
  }
  std::int32_t now = 0;
  std::uint32_t least = std::uint32_t(members_.size());
  for (const auto& [part, by] : change) {
    now += by;
    if (part < parts.count())
      least = std::min(least, std::uint32_t(now));
  }
  return least;
}

std::uint32_t holdings::most_computers() const {
  changes change;
  for (const member_parts& m : members_)
    add(change, m.computes);
  std::int32_t now = 0, most = 0;
  for (const auto& [part, by] : change)
    most = std::max(most, now += by);
  return std::uint32_t(most);
}

} // namespace shoal::core
