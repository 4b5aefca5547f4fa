// runtime/discovery/apart_nodes.cpp -- remembers the last ten minutes.
#include "runtime/discovery/apart_nodes.hpp"

#include "runtime/host/ip_address.hpp"

namespace shoal::runtime {

void recent_count::add(std::int64_t now_ms) {
  const std::int64_t second = now_ms / 1000;
  bucket& b = buckets_[std::size_t(second) % seconds];
  if (b.second != second)
    b = {second, 0};
  ++b.count;
  last_ms_ = now_ms;
}

std::uint64_t recent_count::last_minute(std::int64_t now_ms) const {
  std::uint64_t out = 0;
  for (const bucket& b : buckets_)
    if (b.second >= 0 && now_ms / 1000 - b.second < std::int64_t(seconds))
      out += b.count;
  return out;
}

std::int64_t recent_count::age_ms(std::int64_t now_ms) const {
  return last_ms_ < 0 ? -1 : now_ms - last_ms_;
}

bool apart_nodes::met(const std::string& address, const std::string& why,
                      std::int64_t now_ms) {
  std::erase_if(nodes_, [now_ms](const auto& n) {
    return now_ms - n.second.latest_ms > memory_ms;
  });
  bool listed = false; // the host's announcements say no more than its nodes
  for (auto& [at, n] : nodes_)
    if (host_of(at) == address) {
      n.latest_ms = now_ms;
      listed = true;
    }
  if (listed)
    return false;
  nodes_.erase(host_of(address));
  const auto found = nodes_.find(address);
  if (found == nodes_.end() && nodes_.size() >= nodes_max)
    return false;
  const bool news = found == nodes_.end() || found->second.why != why;
  apart_node& n = nodes_[address];
  if (news)
    n = {address, why, now_ms, now_ms};
  n.latest_ms = now_ms;
  return news;
}

std::vector<apart_node> apart_nodes::list(std::int64_t now_ms) const {
  std::vector<apart_node> out;
  for (const auto& [address, n] : nodes_)
    if (now_ms - n.latest_ms <= memory_ms)
      out.push_back(n);
  return out;
}

} // namespace shoal::runtime
