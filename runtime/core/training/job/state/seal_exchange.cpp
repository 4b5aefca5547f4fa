// runtime/core/training/job/state/seal_exchange.cpp -- seals in time and early.
#include "runtime/core/training/job/state/seal_exchange.hpp"

#include <algorithm>

namespace shoal::core {

std::vector<std::pair<peer_id, seal>> seal_exchange::take_early(const duty& d) {
  std::vector<std::pair<peer_id, seal>> out;
  std::erase_if(early_, [&](const auto& kept) {
    if (d.mine(kept.second.header))
      out.push_back(kept);
    return kept.second.header.since <= d.header.since;
  });
  return out;
}

void seal_exchange::keep(const peer_id& from, const seal& s) {
  const auto at = early_.find(from);
  if (at != early_.end()) {
    if (at->second.header.since < s.header.since)
      at->second = s;
  } else if (early_.size() < kept_max) {
    early_.emplace(from, s);
  } // otherwise it is sent again on a tick
}

bool seal_exchange::is_early(const std::vector<peer_id>& peers,
                             epoch since) const {
  return std::ranges::any_of(early_, [&](const auto& kept) {
    return kept.second.header.since >= since
           && std::ranges::binary_search(peers, kept.first);
  });
}

const seal* seal_exchange::find(const peer_id& peer) const {
  const auto at = seals_.find(peer);
  return at == seals_.end() ? nullptr : &at->second;
}

} // namespace shoal::core
