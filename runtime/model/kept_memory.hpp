// runtime/model/kept_memory.hpp -- freed arrays, kept for the next of their size.
//
// Units come and go with every change of plan, all of a few sizes. A page that
// the system has to find, clear and map costs some 20 times what writing it
// does, and as much again when its process has died and it is taken down; so
// arrays are used again, those freed last first: they are the likeliest to be in
// a cache. As much is kept as is in use, kept_bytes_max at most, or as its owner
// says; the rest, the largest first, goes back where it came from.
//
// Threads:   any.
// Ownership: outlives what is allocated in it.
// Cost:      a lock and a map look-up.
// Errors:    allocate() throws what the memory below throws.
#pragma once

#include "runtime/model/ready_pages.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <utility>

namespace shoal::model {

class kept_memory final : public std::pmr::memory_resource {
public:
  static constexpr std::size_t kept_bytes_max = std::size_t{1} << 30;

  /// Arrays come from `below`; null: ready_pages(). So many bytes are kept also
  /// while less is in use.
  explicit kept_memory(std::shared_ptr<std::pmr::memory_resource> below,
                       std::size_t kept_anyhow = 0)
    : below_(std::move(below)), kept_anyhow_(kept_anyhow) {}
  kept_memory(const kept_memory&) = delete;
  kept_memory& operator=(const kept_memory&) = delete;
  ~kept_memory() override { give_back(kept_); }

  /// Free, and not given back.
  std::size_t kept_bytes() const {
    std::lock_guard lock{mutex_};
    return kept_bytes_;
  }

private:
  using kind = std::pair<std::size_t, std::size_t>; ///< bytes, alignment
  using shelf = std::multimap<kind, void*>;

  std::pmr::memory_resource* below() const {
    return below_ ? below_.get() : ready_pages();
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
      kept_.emplace(kind{bytes, alignment}, p);
      kept_bytes_ += bytes;
      used_bytes_ -= bytes;
      surplus =
        beyond(std::max(kept_anyhow_, std::min(used_bytes_, kept_bytes_max)));
    }
    give_back(surplus); // takes its time
  }

  bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }

  /// Takes the largest out until no more than that is kept.
  shelf beyond(std::size_t most) {
    shelf out;
    while (kept_bytes_ > most) {
      const auto last = std::prev(kept_.end());
      kept_bytes_ -= last->first.first;
      out.insert(kept_.extract(last));
    }
    return out;
  }

  void give_back(const shelf& arrays) {
    for (const auto& [of, p] : arrays)
      below()->deallocate(p, of.first, of.second);
  }

  std::shared_ptr<std::pmr::memory_resource> below_;
  std::size_t kept_anyhow_;
  mutable std::mutex mutex_;
  shelf kept_;
  std::size_t kept_bytes_ = 0;
  std::size_t used_bytes_ = 0;
};

} // namespace shoal::model
