// transport/shm/exposed.hpp -- transfers that the receiver reads in place.
//
// If the bytes of a transfer lie in the sender's arena, only their place goes
// through the ring (frame_kind::bulk_at). The receiver copies them from there,
// through a mapping that it cannot write, and acks. Until then the transfer has
// a slot in the sender's channel with its number in it.
//
// X-1  The sender empties the slot before it returns the memory to its owner,
//      whether or not a receiver is reading. The receiver checks the slot after
//      it has copied, and discards the copy if the slot has changed. So no
//      sender waits for a reader, and no reader uses bytes of anything but
//      the transfer.
//      (This is a seqlock: the slot is the sequence number.)
// X-2  A place is read once and must lie in the mapping, which never shrinks.
// The
//      death of the sender does not change that.
//
// Threads: the progress thread of either end.
#pragma once

#include "transport/shm/layout.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace shoal::transport::shm {

/// The slots of one channel, for its writer.
class exposure {
public:
  exposure() = default;
  explicit exposure(channel_head& head);

  /// @returns the slot that now has `transfer`; empty if all are taken.
  std::optional<std::size_t> expose(std::uint64_t transfer);
  /// From now on, copies of it are discarded.
  void withdraw(std::size_t slot);
  void withdraw_all();
  bool full() const { return free_.empty(); }

private:
  channel_head* head_ = nullptr;
  std::vector<std::size_t> free_;
};

/// The bytes that a bulk_at frame names; empty unless they lie in `memory` and
/// the slot is valid.
std::optional<std::span<const std::byte>>
place_of(const frame& f, std::span<const std::byte> memory);

/// Whether everything read of `transfer` until now is valid.
/// @pre slot < exposed_max
bool is_exposed(const channel_head& theirs, std::size_t slot,
                std::uint64_t transfer);

} // namespace shoal::transport::shm
