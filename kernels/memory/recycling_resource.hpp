// kernels/memory/recycling_resource.hpp -- keeps freed arrays for later allocations.
//
// Units come and go with every change of plan, and have only a few sizes. A
// page that the system has to find, clear and map costs some 20 times as much
// as writing it, and as much again when its process has died and the page is
// unmapped. So arrays are used again, the last freed first, since it is most
// likely to be in a cache. It keeps as many bytes as are in use, at most
// kept_bytes_max or the limit of its owner. The rest, the largest first, goes
// back to the resource below.
//
// Threads:   any.
// Ownership: must outlive the arrays that it allocated.
// Cost:      a lock and a map look-up.
// Errors:    allocate() throws what the resource below throws.
#pragma once

#include "kernels/memory/memory_space.hpp"
#include "kernels/memory/prefault_resource.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <utility>

namespace shoal::model {

class recycling_resource final : public spaced_resource {
public:
  static constexpr std::size_t kept_bytes_max = std::size_t{1} << 30;

  /// Arrays come from `below`, and lie where its memory lies; null:
  /// prefaulted_pages(). Keeps up to `kept_always` bytes even if fewer are in
  /// use.
  explicit recycling_resource(std::shared_ptr<std::pmr::memory_resource> below,
                              std::size_t kept_always = 0)
    : spaced_resource(below ? space_of(*below) : memory_space::host),
      below_(std::move(below)), kept_always_(kept_always) {}
  recycling_resource(const recycling_resource&) = delete;
  recycling_resource& operator=(const recycling_resource&) = delete;
  ~recycling_resource() override { give_back(kept_); }

  /// Bytes that are free, but not returned to the resource below.
  std::size_t kept_bytes() const {
    std::lock_guard lock{mutex_};
    return kept_bytes_;
  }

private:
  using array_kind = std::pair<std::size_t, std::size_t>; ///< bytes, alignment
  using shelf = std::multimap<array_kind, void*>;

  std::pmr::memory_resource* below() const {
    return below_ ? below_.get() : prefaulted_pages();
  }

  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    {
      std::lock_guard lock{mutex_};
      const auto [first, end] = kept_.equal_range({bytes, alignment});
      if (first != end) {
        const auto last = std::prev(end);
        void* const p = last->second;
        kept_.erase(last);
        kept_bytes_ -= bytes;
        used_bytes_ += bytes;
        return p;
      }
    }
    void* const p = below()->allocate(bytes, alignment);
    std::lock_guard lock{mutex_};
    used_bytes_ += bytes;
    return p;
  }

  void
  do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override {
    shelf surplus;
    {
      std::lock_guard lock{mutex_};
      kept_.emplace(array_kind{bytes, alignment}, p);
      kept_bytes_ += bytes;
      used_bytes_ -= bytes;
      surplus =
        beyond(std::max(kept_always_, std::min(used_bytes_, kept_bytes_max)));
    }
    give_back(surplus); // slow, so not under the lock
  }

  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  /// Removes the largest arrays until at most `limit` bytes are kept.
  shelf beyond(std::size_t limit) {
    shelf out;
    while (kept_bytes_ > limit) {
      const auto last = std::prev(kept_.end());
      kept_bytes_ -= last->first.first;
      out.insert(kept_.extract(last));
    }
    return out;
  }

  void give_back(const shelf& arrays) {
    for (const auto& [kind, p] : arrays)
      below()->deallocate(p, kind.first, kind.second);
  }

  std::shared_ptr<std::pmr::memory_resource> below_;
  std::size_t kept_always_;
  mutable std::mutex mutex_;
  shelf kept_;
  std::size_t kept_bytes_ = 0;
  std::size_t used_bytes_ = 0;
};

} // namespace shoal::model
