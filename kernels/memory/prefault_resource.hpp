// kernels/memory/prefault_resource.hpp -- memory for large arrays that come and
// go.
//
// Large pages are usually faster to get than the same memory in small pages:
// 0.1 ms per MB against 0.5 ms (2 cores, 23 November 2026). But some
// hypervisors take back large pages that a machine has freed, and find them
// again page by page when they are touched: there it takes 2.5 ms per MB, while
// small pages, which the machine keeps, cost the same as ever. So allocation
// touches an array one large page after another while that is fast, and uses
// small pages from the first slow page on.
//
// Threads: any. Errors: std::bad_alloc.
// Cost:    from large_bytes on, up to a large page more of addresses, not of
//          memory; the time of one slow page.
#pragma once

#include "kernels/memory/large_pages.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <ctime>

namespace shoal::model {

class prefault_resource final : public std::pmr::memory_resource {
public:
  static constexpr std::size_t page_bytes = large_page_resource::page_bytes;
  static constexpr std::size_t large_bytes = large_page_resource::large_bytes;
  /// A page that takes longer is slow: the time of as much in small pages.
  static constexpr std::int64_t page_ns_max = 1'000'000;

private:
  static std::size_t whole(std::size_t bytes) {
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
  }
  static std::int64_t spent_ns() { // without the time of other threads
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
  }
  static bool is_small(std::size_t bytes, std::size_t alignment) {
    return bytes < large_bytes || alignment > page_bytes;
  }

  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (is_small(bytes, alignment))
      return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    const std::size_t size = whole(bytes);
    void* const mapped =
      ::mmap(nullptr, size + page_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
      throw std::bad_alloc();
    const std::size_t before = -std::uintptr_t(mapped) % page_bytes;
    char* const array = static_cast<char*>(mapped) + before;
    if (before > 0)
      ::munmap(mapped, before);
    ::munmap(array + size, page_bytes - before);
    touch(array, bytes / page_bytes * page_bytes);
    return array;
  }
  /// Touches the part of an array that fills large pages.
  static void touch(char* array, std::size_t size) {
    if (::madvise(array, size, MADV_HUGEPAGE) != 0)
      return;
    std::int64_t before = spent_ns();
    for (std::size_t offset = 0; offset < size; offset += page_bytes) {
      static_cast<volatile char*>(array)[offset] = 0;
      const std::int64_t now = spent_ns();
      if (now - before > page_ns_max) {
        if (const std::size_t next = offset + page_bytes; next < size)
          ::madvise(array + next, size - next, MADV_NOHUGEPAGE);
        return;
      }
      before = now;
    }
  }
  void
  do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override {
    if (is_small(bytes, alignment))
      std::pmr::new_delete_resource()->deallocate(p, bytes, alignment);
    else
      ::munmap(p, whole(bytes));
  }
  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
};

inline std::pmr::memory_resource* prefaulted_pages() noexcept {
  static prefault_resource resource;
  return &resource;
}

} // namespace shoal::model
