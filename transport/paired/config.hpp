// transport/paired/config.hpp -- what a node says about itself, and its limits.
#pragma once

#include "transport/limits.hpp"
#include "transport/peer.hpp"

#include <chrono>
#include <functional>
#include <string_view>

namespace shoal::transport::paired {

struct config {
  peer_id self{};
  peer_role role = peer_role::member;
  std::uint64_t instance = 0;     ///< random, one per process start
  std::uint64_t capabilities = 0; ///< shown to peers as they are
  limits queue{};

  /// Longest control message, in bytes; at most control_bytes_max.
  std::size_t message_bytes_max = control_bytes_max;
  /// Calls that wait for the progress thread, all peers together.
  std::size_t commands_max = 4096;
  /// From connect() to the other's answer.
  std::chrono::milliseconds hello_timeout{2000};
  /// How long the progress thread polls after work before it sleeps. Higher
  /// means lower latency of sparse messages at the cost of a core.
  std::chrono::microseconds spin{30};

  /// One line per event that a person may want to know. On the progress
  /// thread; may be empty.
  std::function<void(std::string_view)> log;
};

} // namespace shoal::transport::paired
