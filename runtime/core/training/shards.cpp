// runtime/core/training/shards.cpp -- units to writers, and collecting their
// reports.
#include "runtime/core/training/shards.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/state/holdings.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace shoal::core {
namespace {

/// For each part the peers that may write it: those that compute it and are
/// able, else its followers of every step that are, else all that compute it.
std::vector<std::vector<peer_id>>
may_write(const holdings& h, std::size_t parts,
          const std::vector<peer_id>& unable) {
  std::vector<std::vector<peer_id>> out(parts);
  const auto add = [&](part_set member_parts::*kind, bool anyhow) {
    part_set without;
    for (part_index p = 0; p < parts; ++p)
      if (out[p].empty())
        without.add(p);
    for (const member_parts& m : h.members())
      if (anyhow || !std::ranges::binary_search(unable, m.where.peer))
        for (const part_index p : m.*kind)
          if (without.contains(p))
            out[p].push_back(m.where.peer);
  };
  add(&member_parts::computes, false);
  add(&member_parts::held, false);
  add(&member_parts::computes, true);
  return out;
}

} // namespace

std::vector<peer_id> shard_writers(const island_place& place,
                                   std::span<const std::uint64_t> unit_bytes,
                                   const std::vector<peer_id>& unable) {
  SHOAL_ASSERT(!place.replicas.empty());
  const auto holders = may_write(holdings(place), unit_bytes.size(), unable);
  std::vector<std::uint32_t> order(unit_bytes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return unit_bytes[a] > unit_bytes[b];
  });
  std::map<peer_id, std::uint64_t> bytes;
  std::vector<peer_id> out(unit_bytes.size());
  for (std::uint32_t u : order) {
    SHOAL_ASSERT(!holders[u].empty());
    out[u] = *std::ranges::min_element(
      holders[u], {}, [&](const peer_id& p) { return std::pair(bytes[p], p); });
    bytes[out[u]] += unit_bytes[u];
  }
  return out;
}

peer_id
publisher_of(const island_place& place, const std::vector<peer_id>& unable) {
  const auto able = [&](const peer_id& p) {
    return !std::ranges::binary_search(unable, p);
  };
  const peer_id& usual = place.checkpointer.peer;
  if (able(usual))
    return usual;
  const std::vector<peer_id> all = holdings(place).participants();
  for (const member_id& k : place.keepers)
    if (able(k.peer) && std::ranges::binary_search(all, k.peer))
      return k.peer;
  const auto first = std::ranges::find_if(all, able);
  return first == all.end() ? usual : *first;
}

std::vector<peer_id> checkpoint_keepers(const island_place& place,
                                        const std::vector<peer_id>& unable) {
  std::vector<peer_id> out;
  const auto add = [&](const peer_id& p, std::size_t most,
                       bool anyhow = false) {
    if (out.size() < most
        && (anyhow || std::ranges::find(unable, p) == unable.end())
        && std::ranges::find(out, p) == out.end())
      out.push_back(p);
  };
  const std::size_t stores = place.keepers.size();
  const auto& usual =
    place.part_keepers.empty() ? place.keepers : place.part_keepers;
  for (const member_id& k : usual)
    add(k.peer, usual.size());
  for (const peer_id& p : holdings(place).participants())
    add(p, stores);
  for (const member_id& k : usual)
    add(k.peer, stores, true);
  std::ranges::sort(out);
  return out;
}

namespace {

/// As good as random, and the same on every peer (splitmix64 by S. Vigna).
std::uint64_t rank_of(const peer_id& peer, part_index part) {
  std::uint64_t x = 0;
  for (std::size_t i = 0; i < 8; ++i)
    x = x << 8 | peer[i];
  x += (part + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

} // namespace

part_set
parts_kept_by(const peer_id& peer, const island_place& place,
              std::uint32_t parts, const std::vector<peer_id>& unable) {
  const std::vector<peer_id> keepers = checkpoint_keepers(place, unable);
  part_set out;
  if (!std::ranges::binary_search(keepers, peer))
    return out;
  const std::size_t stores = place.keepers.size();
  for (part_index p = 0; p < parts; ++p) {
    const std::pair mine(rank_of(peer, p), peer);
    const auto before = std::ranges::count_if(keepers, [&](const peer_id& k) {
      return std::pair(rank_of(k, p), k) > mine;
    });
    if (std::size_t(before) < stores)
      out.add(p);
  }
  return out;
}

part_set
parts_gathered_by(const peer_id& publisher, const island_place& place,
                  std::uint32_t parts, const std::vector<peer_id>& unable) {
  return place.part_keepers.empty()
           ? part_set(part_range{0, parts})
           : parts_kept_by(publisher, place, parts, unable);
}

bool everywhere(std::uint32_t parts, std::size_t stores,
                const std::vector<part_set>& lacks) {
  if (lacks.size() < stores)
    return stores == 0;
  std::vector<std::uint32_t> missing(parts);
  for (const part_set& l : lacks)
    for (const part_range& r : l.runs())
      for (part_index p = r.first; p < std::min(r.last, parts); ++p)
        ++missing[p];
  return std::ranges::all_of(
    missing, [&](std::uint32_t n) { return lacks.size() - n >= stores; });
}

bool others_can_save(const island_place& place, const peer_id& self,
                     std::vector<peer_id> unable) {
  const auto at = std::ranges::lower_bound(unable, self);
  if (at == unable.end() || *at != self)
    unable.insert(at, self);
  const auto able = [&](const peer_id& p) {
    return !std::ranges::binary_search(unable, p);
  };
  if (!able(publisher_of(place, unable)))
    return false;
  const holdings h(place);
  part_set left = h.of(self).held;
  for (const member_parts& m : h.members())
    if (able(m.where.peer))
      left.remove(m.held);
  return left.empty();
}

std::vector<std::uint32_t>
units_written_by(const std::vector<peer_id>& writers, const peer_id& peer) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t u = 0; u < writers.size(); ++u)
    if (writers[u] == peer)
      out.push_back(u);
  return out;
}

shard_tally::shard_tally(std::vector<peer_id> writers)
  : writers_(std::move(writers)) {
}

void shard_tally::take(const peer_id& from, const shards_written& m) {
  if (std::ranges::find(writers_, from) == writers_.end())
    return; // C-2
  failures_.erase(from);
  if (!m.why.empty()) {
    failures_[from] = {from, m.why, m.trying};
    return;
  }
  for (const written_shard& s : m.shards)
    if (s.unit < writers_.size() && writers_[s.unit] == from)
      reported_[s.unit] = s;
}

bool shard_tally::complete() const noexcept {
  return failures_.empty() && reported_.size() == writers_.size();
}

std::vector<written_shard> shard_tally::shards() const {
  std::vector<written_shard> out;
  for (const auto& [unit, shard] : reported_)
    out.push_back(shard);
  return out;
}

const shard_tally::failure* shard_tally::failed() const noexcept {
  for (const auto& [peer, f] : failures_)
    if (!f.trying)
      return &f;
  return failures_.empty() ? nullptr : &failures_.begin()->second;
}

} // namespace shoal::core
