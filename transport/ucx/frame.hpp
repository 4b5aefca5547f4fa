// transport/ucx/frame.hpp -- the header of every active message.
//
// Fixed size, little-endian, like all machines that this runs on. It names the
// two fabrics by their tokens, and the two ends of the connection by numbers
// made at connect(), so that frames of an earlier connection are not accepted.
#pragma once

#include "transport/fabric.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace shoal::transport::ucx {

/// The id of the active message that carries all frames.
inline constexpr unsigned frame_id = 1;

enum class frame_kind : std::uint32_t {
  hello = 1, ///< "I know you"; to_connection 0: no hello of yours received yet
  hello_ack, ///< "and I know you": this makes a peer up
  bye,       ///< the sender disconnects
  message,   ///< a control message; sequence counts them
  bulk,      ///< a transfer: tag, transfer, checksum
  bulk_ack,  ///< how a transfer ended: transfer, status
  ping,      ///< empty; if it cannot be delivered, the peer is dead
};

struct frame {
  std::uint32_t version = 1;
  frame_kind kind = frame_kind::hello;
  std::uint64_t to_token = 0;
  std::uint64_t from_token = 0;
  std::uint64_t to_connection = 0;
  std::uint64_t from_connection = 0;
  std::uint64_t plan = 0;
  std::uint32_t link = 0;
  std::uint32_t sequence = 0;
  std::uint64_t transfer = 0; ///< made by the sender, echoed in its ack
  std::uint64_t checksum = 0; ///< XXH3-64 of the payload; of bulk within one
                              ///< machine: 0
  std::uint64_t status = 0;   ///< of a bulk_ack: an errc, 0 = delivered
};
static_assert(std::endian::native == std::endian::little);
static_assert(std::is_trivially_copyable_v<frame>);
static_assert(sizeof(frame) == 80, "no padding goes over the wire");

/// Parses a header; empty unless it is a frame of this version, to the node
/// `token`, of a connection. The other fields are not verified.
inline std::optional<frame>
frame_of(std::span<const std::byte> header, std::uint64_t token) {
  frame f;
  if (header.size() != sizeof f)
    return {};
  std::memcpy(&f, header.data(), sizeof f);
  if (f.version != frame{}.version || f.to_token != token
      || f.from_connection == 0)
    return {};
  return f;
}

/// Whether a frame belongs to the connection that its ends call `own` and
/// `peers`. The first answer sets `peers`, the other end's number (0: not known
/// yet).
inline bool belongs(const frame& f, std::uint64_t own, std::uint64_t& peers) {
  if (f.to_connection != own)
    return false;
  if (peers == 0)
    peers = f.from_connection;
  return peers == f.from_connection;
}

inline bulk_tag tag_of(const frame& f) {
  return {f.plan, f.link, f.sequence};
}

} // namespace shoal::transport::ucx
