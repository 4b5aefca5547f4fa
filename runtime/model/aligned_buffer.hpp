// runtime/model/aligned_buffer.hpp -- floats on a cache-line boundary.
//
// Ownership: owns its memory; movable, not copyable. Errors: std::bad_alloc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace shoal::model {

/// A fixed number of floats, at first 0.
class aligned_buffer {
public:
  /// One cache line, and one AVX-512 register.
  static constexpr std::align_val_t alignment{64};

  aligned_buffer() = default;
  explicit aligned_buffer(std::size_t size)
    : data_(size == 0 ? nullptr
                      : static_cast<float*>(
                        ::operator new(size * sizeof(float), alignment))),
      size_(size) {
    std::fill_n(data_.get(), size, 0.0f);
  }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  float* data() const noexcept { return data_.get(); }
  std::span<float> span() noexcept { return {data_.get(), size_}; }
  std::span<const float> span() const noexcept { return {data_.get(), size_}; }

private:
  struct release {
    void operator()(float* p) const noexcept {
      ::operator delete(p, alignment);
    }
  };
  std::unique_ptr<float, release> data_;
  std::size_t size_ = 0;
};

} // namespace shoal::model
