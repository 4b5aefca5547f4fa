// runtime/core/cluster/rings.hpp -- which voter watches which member.
//
// Each of rings_max rings is a pseudo-random order of the members, the same at
// every peer. A member's watcher in a ring is the next voter after it that does
// not watch it yet. So a member has rings_max watchers and a voter watches
// about as many members; the graph is an expander, and a view that adds or
// removes a member changes few edges. With few voters each of them watches
// every member.
//
// Cost:   follow() O(members * rings_max): 64 members take well under 1 ms.
// Source: L. Suresh et al., Stable and Consistent Membership at Scale with
// Rapid, USENIX ATC 2018, section 4.1.
#pragma once

#include "runtime/core/view.hpp"

#include <cstdint>
#include <vector>

namespace shoal::core::cluster {

/// K of Rapid, whose evaluation uses 10: with this many watchers, a few slow or
/// dead ones neither hide a death nor invent one.
inline constexpr std::size_t rings_max = 10;

/// The index of a peer in `v.members`; members.size() if it is not there.
std::uint32_t index_of(const view& v, const peer_id& id);

class rings {
public:
  /// @pre `v` outlives this object's use of it
  void follow(const view& v, const peer_id& self);

  /// Members by index, sorted, without the subject itself.
  std::vector<std::uint32_t> watchers(std::uint32_t subject) const;
  /// The members that this peer watches; sorted.
  const std::vector<std::uint32_t>& subjects() const { return subjects_; }
  /// Whether every voter watches every member.
  bool all_watch() const { return all_; }

private:
  struct place {
    std::uint64_t at = 0;
    std::uint32_t index = 0;
    friend auto operator<=>(const place&, const place&) = default;
  };
  place place_of(std::size_t ring, std::uint32_t index) const;
  void find_subjects(std::uint32_t self);

  const view* view_ = nullptr;
  bool all_ = true;
  std::vector<std::vector<place>> order_; ///< of every ring; unused if all_
  std::vector<std::uint32_t> subjects_;
};

} // namespace shoal::core::cluster
