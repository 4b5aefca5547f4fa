// transport/shm/arena.hpp -- memory of this process that its peers may read.
//
// What is allocated here lies in one sealed memfd, which the peers of this
// machine map read-only; so a tensor goes to them with one copy, from where it
// lies to where it is wanted (exposed.hpp), and not with two, by way of a ring.
// The file is as long as the machine has memory and sparse: a page is there
// when it has been written to, and goes when it is freed. What is too small,
// or has no room, comes from operator new, and travels by the rings.
//
// Threads:   any.
// Ownership: outlives what is allocated in it; fabrics hold it by shared_ptr.
// Cost:      a lock and a look through the free ranges, whole pages each;
//            freeing gives the pages back. Meant for memory that is kept.
// Errors:    the constructor throws std::system_error if there is no memfd, or
//            where limits forbid a mapping of that size (ulimit -f, -v).
//            allocate() throws std::bad_alloc.
#pragma once

#include "transport/shm/segment.hpp"

#include <cstdint>
#include <map>
#include <memory_resource>
#include <mutex>

namespace shoal::transport::shm {

/// Most bytes of one arena. Peers map all of it: 256 of them (peers_max) then
/// take half of the 128 TiB that a process can address on x86-64.
inline constexpr std::size_t arena_bytes_max = std::size_t{256} << 30;

class arena final : public std::pmr::memory_resource {
public:
  /// Less does not come from here. At 64 KiB the copy that is saved takes
  /// about as long as a page fault of the receiver does.
  static constexpr std::size_t allocation_bytes_min = std::size_t{64} << 10;

  /// As large as the machine's memory, arena_bytes_max at most.
  arena();
  /// @pre `bytes` is a multiple of a page, arena_bytes_max at most
  explicit arena(std::size_t bytes);

  int descriptor() const { return memory_.descriptor(); }
  std::size_t size() const { return memory_.bytes().size(); }
  /// Where `bytes` lie in it; empty unless all of them do.
  std::optional<std::uint64_t>
  offset_of(std::span<const std::byte> bytes) const noexcept;
  /// Not allocated, for tests.
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
