// runtime/model/activation_pool.cpp -- recycles buffers of activations.
#include "runtime/model/activation_pool.hpp"

namespace shoal::model {

activation::activation(activation_pool& pool, std::size_t rows,
                       std::size_t cols)
  : pool_(&pool), buffer_(pool.take(rows * cols)), rows_(rows), cols_(cols) {
}

void activation::release() {
  if (pool_ != nullptr)
    std::exchange(pool_, nullptr)->give_back(std::move(buffer_));
  rows_ = cols_ = 0;
}

aligned_buffer activation_pool::take(std::size_t size) {
  aligned_buffer buffer;
  auto it = idle_.find(size);
  if (it == idle_.end()) {
    buffer = aligned_buffer(size);
  } else {
    buffer = std::move(it->second.back());
    it->second.pop_back();
    if (it->second.empty())
      idle_.erase(it);
    idle_size_ -= size;
  }
  used_size_ += size;
  used_size_peak_ = std::max(used_size_peak_, used_size_);
  return buffer;
}

void activation_pool::give_back(aligned_buffer buffer) {
  const std::size_t size = buffer.size();
  used_size_ -= size;
  if (idle_size_ + size > used_size_peak_ + used_size_peak_ / 8)
    return;
  idle_[size].push_back(std::move(buffer));
  idle_size_ += size;
}

} // namespace shoal::model
