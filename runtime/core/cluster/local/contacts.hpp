// runtime/core/cluster/local/contacts.hpp -- connected peers, and the last
// hello of each.
#pragma once

#include "runtime/core/cluster/local/hello.hpp"
#include "runtime/core/cluster/local/times.hpp"

#include <map>
#include <optional>

namespace shoal::core::cluster {

/// How often strangers get our hello when nothing has changed.
inline constexpr nanoseconds hello_interval = 1000 * milliseconds;
/// We ask nothing of a stranger that has been silent for this long: it may be
/// gone.
inline constexpr nanoseconds hello_life = 3 * hello_interval;
/// Members and some strangers; further peers are not accepted.
inline constexpr std::size_t contacts_max = 1088;

struct contact {
  std::uint64_t instance = 0; ///< tells the starts of the peer's process apart
  shoal_id shoal{};           ///< the shoal of the view that it has shown
  epoch number = 0;
  std::optional<hello> said;
  nanoseconds said_at = 0;
  nanoseconds hello_at = 0; ///< when to send it our hello again

  bool fresh(nanoseconds now) const { return now - said_at <= hello_life; }
};

class contacts {
public:
  /// @returns false if there are too many
  bool add(const peer_id& peer, std::uint64_t instance);
  /// @returns the addresses that it has named
  std::vector<std::string> remove(const peer_id& peer);

  const contact* find(const peer_id& peer) const;
  bool contains(const peer_id& peer) const { return by_peer_.contains(peer); }
  bool empty() const { return by_peer_.empty(); }
  auto begin() const { return by_peer_.begin(); }
  auto end() const { return by_peer_.end(); }
  std::vector<peer_id> peers() const;

  // Stores what a contact has said. @pre contains(from)
  void hear(const peer_id& from, const hello& said, nanoseconds now);
  void hear_of_view(const peer_id& from, const shoal_id& shoal, epoch number);
  /// The contact knows this decision: it may disconnect before its next
  /// heartbeat says so.
  void hear_of_decision(const peer_id& from, const view& decided);

  /// Our hello has changed: all contacts get it at once.
  void greet_all();
  /// The contacts to greet now: strangers from time to time; members only when
  /// our hello has changed, since heartbeats show them our shoal and epoch.
  std::vector<peer_id> take_to_greet(const view& current, nanoseconds now);
  /// When the next greeting after `now` is due.
  nanoseconds greeting_due(nanoseconds now) const;

  /// Whether some contact can be reached at this address, according to the view
  /// (of a member) or to the peer itself.
  bool includes_address(const std::string& address, const view& current) const;

private:
  std::map<peer_id, contact> by_peer_;
};

} // namespace shoal::core::cluster
