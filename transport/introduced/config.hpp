// transport/introduced/config.hpp -- a node's description of itself, and its
// limits.
#pragma once

#include "transport/limits.hpp"
#include "transport/peer.hpp"

#include <chrono>
#include <functional>
#include <string_view>

namespace shoal::transport::introduced {

struct config {
  peer_id self{};
  peer_role role = peer_role::member;
  std::uint64_t instance = 0;     ///< random, one per process start
  std::uint64_t capabilities = 0; ///< shown to peers unchanged
  limits queue{};

  /// The longest control message, in bytes; at most control_bytes_max.
  std::size_t message_bytes_max = control_bytes_max;
  /// Calls that wait for the progress thread, of all peers together.
  std::size_t commands_max = 4096;
  /// The time from connect() to the answer of the other end.
  std::chrono::milliseconds hello_timeout{2000};
  /// How long the progress thread polls after work before it sleeps. Higher
  /// means lower latency of sparse messages, at the cost of a core.
  std::chrono::microseconds spin{30};

  /// Writes one line per event of interest to users. Called on the progress
  /// thread; may be empty.
  std::function<void(std::string_view)> log;
};

} // namespace shoal::transport::introduced
