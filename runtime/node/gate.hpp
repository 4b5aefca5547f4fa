// runtime/node/gate.hpp -- which messages of which peers reach this node.
//
// A peer that holds the cluster key has proved its identity to the fabric, but
// only the view decides which peers belong to the shoal. The table in
// envelope.hpp marks the kinds of messages that count only from members; all
// others pass at once. A peer may learn of the view that admits it earlier than
// this node: its messages are held until then, in order, and pass when our view
// has it too. A peer that is never admitted is dropped when it disconnects; so
// is one that was expelled, unless it is admitted anew.
//
//   stranger --members()--> member --members()--> expelled
//      held                 passes                held
//
// G-1: the messages of one peer pass in the order in which they came.
// G-2: the memory of held messages is bounded, for one peer and for all.
//
// Threads: any. `out` is called on the calling thread, without a lock, and
//          never twice at a time for one peer.
// Ownership: `out` outlives the gate.
#pragma once

#include "runtime/wire/envelope.hpp"

#include <deque>
#include <map>
#include <mutex>
#include <set>

namespace shoal::runtime {

class gate {
public:
  /// Messages held of one peer: as many as a link service takes early credits.
  static constexpr std::size_t held_max = 16384;
  static constexpr std::size_t held_bytes_max = std::size_t{4} << 20;
  /// Bytes held of all peers together.
  static constexpr std::size_t all_bytes_max = std::size_t{64} << 20;

  explicit gate(message_handler& out) : out_(out) {}

  /// Passes, holds or drops a message that took `bytes` on the wire.
  void take(const core::peer_id& from, envelope&& e, std::size_t bytes);

  /// The view has changed: passes held messages of its members.
  void members(std::set<core::peer_id> now);

  /// The peer has disconnected: drops its held messages.
  void gone(const core::peer_id& peer);

  /// Messages that were dropped.
  std::uint64_t dropped() const;

  /// Bytes held of all peers.
  std::size_t held_bytes() const;

private:
  struct held {
    envelope message;
    std::size_t bytes = 0;
  };
  struct waiting {
    std::deque<held> messages;
    std::size_t bytes = 0;
    bool releasing = false; ///< members() is releasing: others queue up
  };
  void forget(std::map<core::peer_id, waiting>::iterator at);
  void release(const core::peer_id& peer);

  message_handler& out_;
  mutable std::mutex mutex_; ///< guards what follows
  std::set<core::peer_id> members_;
  std::map<core::peer_id, waiting> waiting_;
  std::size_t all_bytes_ = 0;
  std::uint64_t dropped_ = 0;
};

} // namespace shoal::runtime
