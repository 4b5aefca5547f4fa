// actors/training/buffers.hpp -- reused memory for data that travels over
// links.
//
// A buffer returns to its pool when the last holder (actor, device work or
// transfer) releases it, so a cancelled transfer cannot write into memory that
// has been given to another holder.
//
// Threads: any. Cost: a map look-up; fresh memory only when none is free.
#pragma once

#include "runtime/links/links.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace shoal::model {
class recycling_resource;
}

namespace shoal::actors {

/// A shared array of floats, doubles or ids; initially undefined.
class buffer {
public:
  buffer() = default;
  buffer(std::shared_ptr<std::byte> bytes, std::size_t size)
    : bytes_(std::move(bytes)), size_(size) {}

  explicit operator bool() const noexcept { return bytes_ != nullptr; }
  template <class Value>
  std::span<Value> as() const noexcept {
    return {reinterpret_cast<Value*>(bytes_.get()), size_ / sizeof(Value)};
  }
  runtime::shared_bytes shared() const {
    return {bytes_, {bytes_.get(), size_}};
  }

private:
  std::shared_ptr<std::byte> bytes_;
  std::size_t size_ = 0;
};

class buffer_pool {
public:
  /// Buffers are allocated from `memory`; null: prefaulted_pages().
  explicit buffer_pool(runtime::shared_memory_resource memory = nullptr);
  /// @returns `bytes` of memory on a cache-line boundary.
  buffer get(std::size_t bytes);

  /// Free memory above this is returned to the system.
  static constexpr std::size_t free_bytes_max = std::size_t{1} << 30;

private:
  std::shared_ptr<model::recycling_resource> memory_;
};

} // namespace shoal::actors
