// transport/shm/layout.hpp -- the memory that processes of one machine share.
//
// One process writes this memory, and others map it read-only:
//   directory  one per node: its identity, whether it sleeps, and the channel
//   for
//              each peer
//   channel    one per peer that it sends to: a ring of frames, and how far the
//              node has read the ring of the other end
//   arena      one per node, if it has one: memory of its callers; the others
//              read the parts that frames name (exposed.hpp)
//
// S-1  A process writes its own memory only. The memory of others may change at
//      any time and contain anything: it is copied, then checked.
// S-2  A frame is published (channel_head::written) after all its bytes are
//      there. So a process may die or hang at any instruction: others only read
//      complete frames, and no process waits for a lock that it holds.
//
// Little-endian, like all machines that this runs on. Both ends are programs of
// the same machine; `magic` changes with the layout.
#pragma once

#include "transport/fabric.hpp"

#include <atomic>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace shoal::transport::shm {

inline constexpr std::uint64_t magic = 0x32'30'6d'68'73'6c'68'73; // "shlshm02"
/// The peers that one node may have. Each costs the sender one channel, and the
/// receiver nothing.
inline constexpr std::size_t peers_max = 256;
/// Frames begin at multiples of this, a cache line.
inline constexpr std::size_t line_bytes = 64;

using counter = std::atomic<std::uint64_t>;
static_assert(counter::is_always_lock_free);
static_assert(std::endian::native == std::endian::little);

/// The channel through which the node sends to a peer.
struct directory_entry {
  counter to{0};         ///< token of the peer; 0: free. Written last
  counter connection{0}; ///< number of the channel
  counter descriptor{0}; ///< of the channel, in the node's process
};

struct directory {
  std::uint64_t magic = shm::magic;
  std::uint64_t token = 0;       ///< the node's secret, also in its address
  std::uint64_t arena_bytes = 0; ///< 0: it has none
  std::uint64_t arena_descriptor = 0;    ///< in the node's process
  alignas(line_bytes) counter asleep{0}; ///< odd: ring the bell
  alignas(line_bytes) directory_entry entries[peers_max];
};

/// Transfers that a channel may expose at a time; others go through the ring.
/// As many as may be queued for a peer (limits::bulk_sends).
inline constexpr std::size_t exposed_max = 1024;

struct channel_head {
  std::uint64_t magic = shm::magic;
  std::uint64_t from = 0; ///< tokens of both ends
  std::uint64_t to = 0;
  std::uint64_t connection = 0; ///< this channel's number, never 0
  counter hears{0};  ///< connection of the other channel, once it is mapped
  counter closed{0}; ///< 1: nothing follows the frames written
  counter waits{0};  ///< 1: the ring was full; ring the bell after reading
  counter reads{0};  ///< 1: the other end's arena is mapped. Before `hears`
  alignas(line_bytes) counter written{0}; ///< bytes of frames published
  alignas(line_bytes) counter taken{0};   ///< bytes read of the other channel
  alignas(line_bytes) counter exposed[exposed_max]; ///< transfers; 0: none
};

/// The offset of the ring in a channel, and its size, a power of two. Higher
/// means fewer wake-ups, lower means that it stays in the cache.
inline constexpr std::size_t ring_offset = 12288;
inline constexpr std::size_t ring_bytes = std::size_t{512} << 10;
static_assert(sizeof(channel_head) <= ring_offset);
/// Payload bytes of a frame at most. Lower means that the other end begins to
/// copy earlier, and that control messages wait less behind bulk.
inline constexpr std::size_t payload_bytes_max = std::size_t{64} << 10;

enum class frame_kind : std::uint32_t {
  gap = 1,  ///< nothing: fills the rest up to the end of the ring
  message,  ///< a part of a control message: offset, total
  bulk,     ///< a part of a transfer: tag, transfer, offset, total
  bulk_ack, ///< how a transfer ended: transfer, status
  bulk_end, ///< the sender gave a transfer up: transfer
  bulk_at,  ///< a whole transfer: tag, transfer, total, offset in the
            ///< sender's arena, slot
};

struct frame {
  frame_kind kind = frame_kind::gap;
  std::uint32_t bytes = 0;    ///< payload that follows
  std::uint64_t transfer = 0; ///< made by the sender, echoed in its ack
  std::uint64_t total = 0;    ///< bytes of the whole message or transfer
  std::uint64_t offset = 0;   ///< of this part in the message or transfer
  std::uint64_t plan = 0;
  std::uint32_t link = 0;
  std::uint32_t sequence = 0;
  std::uint64_t status = 0; ///< of a bulk_ack: an errc, 0 = delivered
  std::uint64_t slot = 0;   ///< of a bulk_at, in channel_head::exposed
};
static_assert(std::is_trivially_copyable_v<frame>);
static_assert(sizeof(frame) == line_bytes);

inline bulk_tag tag_of(const frame& f) {
  return {f.plan, f.link, f.sequence};
}

} // namespace shoal::transport::shm
