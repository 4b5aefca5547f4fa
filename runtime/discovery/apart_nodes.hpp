// runtime/discovery/apart_nodes.hpp -- nodes that this node met, of other shoals.
//
// For each: where, since when, why it is not of this shoal, and what the user
// can do. A wrong key file or --cluster looks like an empty network: the node
// that was started with it must say so itself.
//
// Threads: one at a time; the node guards it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shoal::runtime {

/// Events of the last minute, by second.
class recent_count {
public:
  void add(std::int64_t now_ms);
  /// The number of events in the last 60 s.
  std::uint64_t last_minute(std::int64_t now_ms) const;
  /// The time since the last event; negative: there was none.
  std::int64_t age_ms(std::int64_t now_ms) const;

private:
  static constexpr std::size_t seconds = 60;
  struct bucket {
    std::int64_t second = -1;
    std::uint64_t count = 0;
  };
  bucket buckets_[seconds];
  std::int64_t last_ms_ = -1;
};

struct apart_node {
  std::string address;
  std::string why;            ///< and what to do
  std::int64_t since_ms = 0;  ///< Unix time
  std::int64_t latest_ms = 0; ///< the same
};

class apart_nodes {
public:
  /// A user reads the list; with a wrong key it could hold every node that
  /// answers.
  static constexpr std::size_t nodes_max = 64;
  /// A node not met for this long is gone, or its problem was solved.
  static constexpr std::int64_t memory_ms = 10 * 60'000;

  /// @param address  of a node, or the host of announcements alone. A host whose
  /// nodes are listed is not listed beside them.
  /// @returns whether this is news, to be logged: the address is new here, or
  /// gives another reason. If the list is full, nothing is news.
  bool
  met(const std::string& address, const std::string& why, std::int64_t now_ms);
  /// The node at `address` is now of this shoal.
  void joined(const std::string& address) { nodes_.erase(address); }

  std::vector<apart_node> list(std::int64_t now_ms) const;

private:
  std::map<std::string, apart_node> nodes_; ///< by address
};

} // namespace shoal::runtime
