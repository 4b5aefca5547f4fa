// transport/limits.hpp -- bounds on the data that a fabric queues for one peer.
//
// Higher means fewer would_block answers, at the cost of memory and of the time
// that a new message waits behind the queued ones.
#pragma once

#include <cstddef>

namespace shoal::transport {

/// The longest control message. Views and plans of a thousand members fit;
/// larger data is bulk.
inline constexpr std::size_t control_bytes_max = std::size_t{1} << 20;

/// Bounds per peer. A call beyond one of them returns would_block.
struct limits {
  std::size_t messages = 4096; ///< control messages queued
  std::size_t message_bytes = std::size_t{16} << 20; ///< their bytes
  std::size_t bulk_sends = 1024; ///< bulk transfers queued or not yet acked
  std::size_t receives = 4096;   ///< receives posted
};

} // namespace shoal::transport
