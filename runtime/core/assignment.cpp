// runtime/core/assignment.cpp -- holders of units, and digests of places.
#include "runtime/core/assignment.hpp"

#include "runtime/core/canonical.hpp"

#include <algorithm>
#include <set>

namespace shoal::core {

bool waits(const assignment& a) {
  return std::ranges::all_of(
    a.islands, [](const island_place& at) { return at.replicas.empty(); });
}

std::uint64_t digest(const island_id& id, const island_place& a) {
  canonical_writer w(canonical_writer::unset::written);
  w.add(id.job);
  w.add(a);
  if (id.index > 0)
    w.add(std::uint64_t{id.index});
  std::uint64_t z = 0xcbf29ce484222325u; // FNV-1a
  for (const std::byte b : std::move(w).take())
    z = (z ^ static_cast<std::uint8_t>(b)) * 0x100000001b3u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u; // splitmix64's finaliser
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return z == 0 ? 1 : z; // 0 means none
}

unit_range units_of(const island_place& place, std::uint32_t replica,
                    std::uint32_t stage) {
  const auto& stages = place.replicas.at(replica).stages;
  const stage_place& s = stages.at(stage);
  return {stage == 0 ? 0 : s.first_block + 1,
          s.last_block + (stage + 1 == stages.size() ? 2 : 1)};
}

std::vector<std::uint32_t>
units_of(const island_place& place, const peer_id& peer) {
  std::set<std::uint32_t> out;
  for (std::uint32_t r = 0; r < place.replicas.size(); ++r)
    for (std::uint32_t s = 0; s < place.replicas[r].stages.size(); ++s) {
      if (place.replicas[r].stages[s].where.peer != peer)
        continue;
      const unit_range range = units_of(place, r, s);
      for (std::uint32_t u = range.first; u < range.last; ++u)
        out.insert(u);
    }
  if (place.copy_every <= 1)
    for (const std::uint32_t u : followed_units(place, peer))
      out.insert(u);
  return {out.begin(), out.end()};
}

std::vector<std::uint32_t>
followed_units(const island_place& place, const peer_id& peer) {
  std::set<std::uint32_t> out;
  for (const follower_place& f : place.followers)
    if (f.where.peer == peer)
      for (std::uint32_t u = f.first_unit; u < f.last_unit; ++u)
        out.insert(u);
  return {out.begin(), out.end()};
}

std::vector<peer_id> participants(const island_place& place) {
  std::set<peer_id> out;
  for (const replica_place& r : place.replicas)
    for (const stage_place& s : r.stages)
      out.insert(s.where.peer);
  for (const follower_place& f : place.followers)
    out.insert(f.where.peer);
  return {out.begin(), out.end()};
}

const char* to_text(schedule_kind k) {
  switch (k) {
  case schedule_kind::one_f_one_b:
    return "1f1b";
  case schedule_kind::interleaved:
    return "interleaved";
  case schedule_kind::zero_bubble:
    return "zero_bubble";
  }
  return "unknown";
}

} // namespace shoal::core
