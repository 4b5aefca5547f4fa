// runtime/core/cluster/local/contacts.hpp -- connected peers, and what each
// last said of itself.
#pragma once

#include "runtime/core/cluster/local/hello.hpp"
#include "runtime/core/cluster/local/times.hpp"

#include <map>
#include <optional>

namespace shoal::core::cluster {

/// How often strangers hear of our shoal when nothing has changed.
inline constexpr nanoseconds hello_interval = 1000 * milliseconds;
/// A stranger that has said nothing for this long may be gone: we do not ask it.
inline constexpr nanoseconds hello_life = 3 * hello_interval;
/// Members and some strangers; more are not listened to.
inline constexpr std::size_t contacts_max = 1088;

struct contact {
  std::uint64_t instance = 0; ///< which start of the peer's process it is
  shoal_id shoal{};           ///< the view that it has shown
  epoch number = 0;
  std::optional<hello> said;
  nanoseconds said_at = 0;
  nanoseconds hello_at = 0; ///< when to tell it ours again

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

  // What a contact has said. @pre contains(from)
  void hear(const peer_id& from, const hello& said, nanoseconds now);
  void hear_of_view(const peer_id& from, const shoal_id& shoal, epoch number);
  /// It knows this decision: it may be gone before its next heartbeat says so.
  void hear_of_decision(const peer_id& from, const view& decided);

  /// We have changed: all are to be told at once.
  void greet_all();
  /// Those to be told now: strangers from time to time, members only when we
  /// have changed, since they see our shoal and epoch in heartbeats.
  std::vector<peer_id> take_to_greet(const view& current, nanoseconds now);
  /// When the next greeting after `now` is due.
  nanoseconds greeting_due(nanoseconds now) const;

  /// Whether one of them is reached at this address: as the view says of a
  /// member, or as the peer says itself.
  bool includes_address(const std::string& address, const view& current) const;

private:
  std::map<peer_id, contact> by_peer_;
};

} // namespace shoal::core::cluster
