// kernels/memory/aligned_buffer.hpp -- floats on a cache-line boundary.
//
// Ownership: owns its memory, and a share of the resource that it came from;
//            movable, not copyable.
// Errors:    std::bad_alloc.
#pragma once

#include "kernels/memory/large_pages.hpp"
#include "kernels/memory/memory_space.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <span>
#include <utility>

namespace shoal::model {

/// One cache line, and one AVX-512 register.
inline constexpr std::size_t buffer_alignment = 64;

/// Returns an array to its memory resource; null: large_pages().
struct array_release {
  std::shared_ptr<std::pmr::memory_resource> memory = nullptr;
  std::size_t bytes = 0;

  std::pmr::memory_resource* from() const noexcept {
    return memory ? memory.get() : large_pages();
  }
  void operator()(float* p) const noexcept {
    from()->deallocate(p, bytes, buffer_alignment);
  }
};

/// A fixed number of floats, initially 0; or undefined if they lie on a device,
/// where only a backend can set them (kernels/layers/copy.hpp).
class aligned_buffer {
public:
  /// The memory resource; null: large_pages().
  using memory_ptr = std::shared_ptr<std::pmr::memory_resource>;

  aligned_buffer() = default;
  explicit aligned_buffer(std::size_t size, memory_ptr memory = nullptr)
    : data_(nullptr, array_release{std::move(memory), size * sizeof(float)}),
      size_(size) {
    if (size == 0)
      return;
    const array_release& release = data_.get_deleter();
    data_.reset(static_cast<float*>(
      release.from()->allocate(release.bytes, buffer_alignment)));
    if (space() != memory_space::device)
      std::fill_n(data_.get(), size, 0.0f);
  }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  /// Where the floats lie, which data() and span() do not check.
  memory_space space() const noexcept {
    return space_of(*data_.get_deleter().from());
  }
  float* data() const noexcept { return data_.get(); }
  std::span<float> span() noexcept { return {data_.get(), size_}; }
  std::span<const float> span() const noexcept { return {data_.get(), size_}; }

private:
  std::unique_ptr<float, array_release> data_;
  std::size_t size_ = 0;
};

} // namespace shoal::model
