// transport/shm/arena.cpp -- free ranges of a sparse file.

#include "transport/shm/arena.hpp"

#include "transport/assert.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

namespace shoal::transport::shm {

namespace {

/// Allocations begin and end at multiples of this. Not the page size of this
/// machine, which may be smaller.
constexpr std::size_t page_bytes = std::size_t{64} << 10;

constexpr std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

std::size_t memory_of_machine() {
  const auto pages = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES));
  const auto bytes = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return std::min(whole_pages(bytes), arena_bytes_max);
}

/// A file longer than the limit would end the process (SIGXFSZ), and limited
/// address space is needed elsewhere.
std::size_t permitted(std::size_t bytes) {
  rlimit file{}, space{};
  if (getrlimit(RLIMIT_FSIZE, &file) != 0 || getrlimit(RLIMIT_AS, &space) != 0
      || file.rlim_cur < bytes || space.rlim_cur != RLIM_INFINITY)
    throw std::system_error(EFBIG, std::generic_category(),
                            "memory for tensors");
  return bytes;
}

} // namespace

arena::arena() : arena(memory_of_machine()) {
}

arena::arena(std::size_t bytes)
  : memory_(permitted(bytes), segment::pages::may_go) {
  SHOAL_ASSERT(bytes % page_bytes == 0 && bytes <= arena_bytes_max);
  if (bytes != 0)
    free_.emplace(0, bytes);
}

std::optional<std::uint64_t>
arena::offset_of(std::span<const std::byte> bytes) const noexcept {
  const auto all = memory_.bytes();
  const auto first = reinterpret_cast<std::uintptr_t>(bytes.data());
  const auto base = reinterpret_cast<std::uintptr_t>(all.data());
  if (first < base || first - base > all.size()
      || bytes.size() > all.size() - (first - base))
    return {};
  return first - base;
}

std::size_t arena::free_bytes() const {
  std::lock_guard hold(lock_);
  std::size_t sum = 0;
  for (const auto& [offset, size] : free_)
    sum += size;
  return sum;
}

void* arena::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes >= allocation_bytes_min && bytes <= size()
      && alignment <= static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    const std::size_t wanted = whole_pages(bytes);
    std::lock_guard hold(lock_);
    const auto at = std::ranges::find_if(
      free_, [&](const auto& range) { return range.second >= wanted; });
    if (at != free_.end()) {
      const auto [offset, size] = *at;
      free_.erase(at);
      if (size != wanted)
        free_.emplace(offset + wanted, size - wanted);
      return memory_.bytes().data() + offset;
    }
  }
  return ::operator new (bytes, std::align_val_t{alignment});
}

void arena::do_deallocate(void* p, std::size_t bytes, std::size_t alignment) {
  const auto found = offset_of({static_cast<std::byte*>(p), bytes});
  if (!found)
    return ::operator delete (p, std::align_val_t{alignment});
  std::size_t offset = *found, size = whole_pages(bytes);
  memory_.release({static_cast<std::byte*>(p), size});
  std::lock_guard hold(lock_);
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && offset + size == next->first) {
    size += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free_.emplace(offset, size);
}

} // namespace shoal::transport::shm
