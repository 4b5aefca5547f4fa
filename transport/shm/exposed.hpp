// transport/shm/exposed.hpp -- transfers that are read where they lie.
//
// Of a transfer whose bytes lie in the sender's arena only their place goes
// through the ring (frame_kind::bulk_at); the receiver copies them from there,
// by a mapping that it cannot write, and acks. Until then the transfer has a
// slot in the sender's channel with its number in it.
//
// X-1  The sender empties the slot before it gives the memory back to its
//      owner, whoever reads. The receiver looks at the slot after it has
//      copied, and if it has changed, what it has copied counts as nothing.
//      So nobody ever waits for a reader, and nobody takes bytes that are not
//      those of the transfer. (A seqlock: the slot is the sequence number.)
// X-2  A place is looked at once and must lie in what is mapped, which never
//      shrinks. The sender's death changes nothing of it.
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
  /// From now on what is copied of it does not count.
  void withdraw(std::size_t slot);
  void withdraw_all();
  bool full() const { return free_.empty(); }

private:
  channel_head* head_ = nullptr;
  std::vector<std::size_t> free_;
};

/// Where the bytes of a bulk_at frame are; empty unless they lie in `memory`
/// and the slot is one.
std::optional<std::span<const std::byte>>
place_of(const frame& f, std::span<const std::byte> memory);

/// Whether all that has been read of `transfer` so far counts.
/// @pre slot < exposed_max
bool is_exposed(const channel_head& theirs, std::size_t slot,
                std::uint64_t transfer);

} // namespace shoal::transport::shm
