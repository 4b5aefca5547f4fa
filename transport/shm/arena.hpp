// transport/shm/arena.hpp -- memory of this process that its peers may read.
//
// Allocations lie in one sealed memfd, which the peers of this machine map
// read-only. So a tensor reaches them with one copy, from its place to its
// destination (exposed.hpp), and not with two, through a ring. The file is as
// long as the machine has memory, and sparse: a page exists once it has been
// written to, and goes when it is freed. Allocations that are too small, or for
// which there is no room, come from operator new, and travel through the rings.
//
// Threads:   any.
// Ownership: must outlive its allocations; fabrics hold it by shared_ptr.
// Cost:      a lock and a search through the free ranges, whole pages each;
//            freeing returns the pages. Meant for memory that is kept.
// Errors:    the constructor throws std::system_error if there is no memfd, or
//            if limits forbid a mapping of that size (ulimit -f, -v).
//            allocate() throws std::bad_alloc.
#pragma once

#include "transport/shm/segment.hpp"

#include <cstdint>
#include <map>
#include <memory_resource>
#include <mutex>

namespace shoal::transport::shm {

/// The largest arena. Peers map all of it: 256 of them (peers_max) then take
/// half of the 128 TiB that a process can address on x86-64.
inline constexpr std::size_t arena_bytes_max = std::size_t{256} << 30;

class arena final : public std::pmr::memory_resource {
public:
  /// Smaller allocations come from elsewhere. At 64 KiB the saved copy takes
  /// about as long as a page fault of the receiver.
  static constexpr std::size_t allocation_bytes_min = std::size_t{64} << 10;

  /// As large as the machine's memory, at most arena_bytes_max.
  arena();
  /// @pre `bytes` is a multiple of a page, at most arena_bytes_max
  explicit arena(std::size_t bytes);

  int descriptor() const { return memory_.descriptor(); }
  std::size_t size() const { return memory_.bytes().size(); }
  /// The offset of `bytes` in the arena; empty unless all of them lie in it.
  std::optional<std::uint64_t>
  offset_of(std::span<const std::byte> bytes) const noexcept;
  /// Bytes that are not allocated, for tests.
  std::size_t free_bytes() const;

private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void
  do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  segment memory_;
  mutable std::mutex lock_;
  std::map<std::size_t, std::size_t> free_; ///< size by offset, never adjacent
};

} // namespace shoal::transport::shm
