// runtime/model/activation_pool.hpp -- recycles buffers of activations.
//
// Microbatches of one shape need the same sizes again and again, so a returned
// buffer serves the next of them. Idle buffers take at most as much memory as
// was ever in use at once, and an eighth more, since a buffer only serves
// requests of equal size. The rest returns to the system.
//
// Ownership: the pool outlives its buffers. Threads: one at a time.
#pragma once

#include "kernels/common/tensor.hpp"
#include "kernels/memory/aligned_buffer.hpp"

#include <map>
#include <utility>
#include <vector>

namespace shoal::model {

class activation_pool;

/// A buffer on loan; returns when destroyed. Its values are arbitrary.
class activation {
public:
  activation() = default;
  activation(activation_pool& pool, std::size_t rows, std::size_t cols);
  activation(activation&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      buffer_(std::move(other.buffer_)), rows_(std::exchange(other.rows_, 0)),
      cols_(std::exchange(other.cols_, 0)) {}
  activation& operator=(activation&& other) noexcept {
    release();
    pool_ = std::exchange(other.pool_, nullptr);
    buffer_ = std::move(other.buffer_);
    rows_ = std::exchange(other.rows_, 0);
    cols_ = std::exchange(other.cols_, 0);
    return *this;
  }
  ~activation() { release(); }

  void release();
  bool empty() const noexcept { return pool_ == nullptr; }
  kernels::matrix_view<float> matrix() const {
    return {buffer_.data(), rows_, cols_};
  }
  kernels::vector_view<float> vector() const {
    return {buffer_.data(), rows_ * cols_};
  }

private:
  activation_pool* pool_ = nullptr;
  aligned_buffer buffer_;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
};

/// The buffers that are not on loan.
class activation_pool {
public:
  aligned_buffer take(std::size_t size);
  void give_back(aligned_buffer buffer);
  /// Frees the idle buffers.
  void trim() noexcept {
    idle_.clear();
    idle_size_ = 0;
  }
  std::size_t bytes() const noexcept {
    return (used_size_ + idle_size_) * sizeof(float);
  }

private:
  std::map<std::size_t, std::vector<aligned_buffer>> idle_; ///< by size
  std::size_t used_size_ = 0;
  std::size_t used_size_peak_ = 0;
  std::size_t idle_size_ = 0;
};

} // namespace shoal::model
