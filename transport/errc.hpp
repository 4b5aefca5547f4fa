// transport/errc.hpp -- the errors that can occur between two peers.
//
// A code exists only if some caller acts differently on it.
#pragma once

#include <system_error>

namespace shoal::transport {

enum class errc {
  ok = 0,
  would_block,   ///< a bounded queue is full: try again after a completion
  peer_lost,     ///< the connection ended, or there is none: reconnect
  not_posted,    ///< bulk arrived for a tag without a posted receive: dropped
  size_mismatch, ///< the posted region and the sent bytes differ in length
  corrupt,       ///< the checksum of a transfer disagreed
  canceled,      ///< the caller cancelled, or the fabric is closing
  refused,       ///< the other end failed the proof, or refused our proof
  too_large,     ///< over message_bytes_max
  unreachable,   ///< this fabric has no path to that peer
  no_answer,     ///< there is a path, but the peer did not use it in time
  self,          ///< the address leads to this node: do not dial it again
};

const std::error_category& transport_category() noexcept;

inline std::error_code make_error_code(errc e) noexcept {
  return {static_cast<int>(e), transport_category()};
}

} // namespace shoal::transport

template <>
struct std::is_error_code_enum<shoal::transport::errc> : std::true_type {};
