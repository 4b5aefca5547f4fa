// runtime/core/training/shards.cpp -- units to writers, and collecting their
// reports.
#include "runtime/core/training/shards.hpp"

#include "runtime/core/assert.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace shoal::core {
namespace {

void leave_out(std::vector<std::vector<peer_id>>& holders,
               const island_place& place, const std::vector<peer_id>& unable) {
  const auto able = [&](const peer_id& p) {
    return !std::ranges::binary_search(unable, p);
  };
  std::vector<std::vector<peer_id>> others(holders.size()); // followers
  for (const peer_id& p : participants(place))
    if (able(p))
      for (const std::uint32_t u : units_of(place, p))
        others.at(u).push_back(p);
  for (std::size_t u = 0; u < holders.size(); ++u) {
    std::vector<peer_id> left;
    std::ranges::copy_if(holders[u], std::back_inserter(left), able);
    if (left.empty())
      left = others[u];
    if (!left.empty())
      holders[u] = std::move(left);
  }
}

} // namespace

std::vector<peer_id> shard_writers(const island_place& place,
                                   std::span<const std::uint64_t> unit_bytes,
                                   const std::vector<peer_id>& unable) {
  SHOAL_ASSERT(!place.replicas.empty());
  std::vector<std::vector<peer_id>> holders(unit_bytes.size());
  for (std::uint32_t r = 0; r < place.replicas.size(); ++r)
    for (std::uint32_t s = 0; s < place.replicas[r].stages.size(); ++s) {
      const unit_range range = units_of(place, r, s);
      for (std::uint32_t u = range.first; u < range.last; ++u)
        holders.at(u).push_back(place.replicas[r].stages[s].where.peer);
    }
  if (!unable.empty())
    leave_out(holders, place, unable);
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
  const std::vector<peer_id> all = participants(place);
  for (const member_id& k : place.keepers)
    if (able(k.peer) && std::ranges::binary_search(all, k.peer))
      return k.peer;
  const auto first = std::ranges::find_if(all, able);
  return first == all.end() ? usual : *first;
}

std::vector<peer_id> checkpoint_keepers(const island_place& place,
                                        const std::vector<peer_id>& unable) {
  std::vector<peer_id> out;
  const auto add = [&](const peer_id& p, bool anyhow = false) {
    if (out.size() < place.keepers.size()
        && (anyhow || std::ranges::find(unable, p) == unable.end())
        && std::ranges::find(out, p) == out.end())
      out.push_back(p);
  };
  for (const member_id& k : place.keepers)
    add(k.peer);
  for (const peer_id& p : participants(place))
    add(p);
  for (const member_id& k : place.keepers)
    add(k.peer, true);
  std::ranges::sort(out);
  return out;
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
  std::vector<std::uint32_t> left = units_of(place, self);
  for (const peer_id& p : participants(place)) {
    if (!able(p))
      continue;
    const std::vector<std::uint32_t> theirs = units_of(place, p);
    std::erase_if(left, [&](std::uint32_t u) {
      return std::ranges::binary_search(theirs, u);
    });
  }
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
