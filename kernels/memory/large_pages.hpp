// kernels/memory/large_pages.hpp -- memory for arrays of many megabytes.
//
// The state of a stage is hundreds of megabytes, and a peer that takes over a
// stage allocates it while all others wait. With pages of 4 KiB most of that
// time is work of the kernel, so large arrays ask for pages of 2 MiB. A rest at
// the end that does not fill one gets small pages.
//
// Threads: any. Errors: std::bad_alloc.
// Cost:    from large_bytes on, up to page_bytes more of addresses, not of
//          memory.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory_resource>
#include <new>

namespace shoal::model {

class large_page_resource final : public std::pmr::memory_resource {
public:
  static constexpr std::size_t page_bytes = std::size_t{2} << 20;
  /// Smaller arrays would waste too much memory.
  static constexpr std::size_t large_bytes = 2 * page_bytes;

private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes < large_bytes || alignment > page_bytes)
      return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    const std::size_t whole =
      (bytes + page_bytes - 1) / page_bytes * page_bytes;
    void* const p = std::aligned_alloc(page_bytes, whole);
    if (p == nullptr)
      throw std::bad_alloc();
    const std::size_t filled = bytes / page_bytes * page_bytes;
    static_cast<void>(
      ::madvise(p, filled, MADV_HUGEPAGE)); // small ones also do
    if (filled != whole) // memory freed here before may have had large ones
      static_cast<void>(::madvise(static_cast<char*>(p) + filled,
                                  whole - filled, MADV_NOHUGEPAGE));
    return p;
  }
  void
  do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override {
    if (bytes < large_bytes || alignment > page_bytes)
      std::pmr::new_delete_resource()->deallocate(p, bytes, alignment);
    else
      std::free(p);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
};

inline std::pmr::memory_resource* large_pages() noexcept {
  static large_page_resource resource;
  return &resource;
}

} // namespace shoal::model
