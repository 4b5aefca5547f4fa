// tests/support/kv_memory.hpp -- memory for pages of keys and values.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/memory/aligned_buffer.hpp"

#include <numeric>
#include <vector>

namespace shoal::tests {

/// The cache of one layer.
class kv_memory {
public:
  kv_memory(kernels::kv_type type, std::size_t pages,
            const kernels::attention_shape& s)
    : view_{nullptr, pages, type, s.kv_heads, s.head_size},
      buffer_(pages * view_.page_bytes() / sizeof(float)) {
    view_.data = reinterpret_cast<std::byte*>(buffer_.data());
  }
  const kernels::kv_pages& view() const { return view_; }
  std::span<const std::byte> bytes() const {
    return {view_.data, view_.pages * view_.page_bytes()};
  }

private:
  kernels::kv_pages view_;
  model::aligned_buffer buffer_;
};

/// Pages first, first + step, ... of a cache of `pages`, where `step` and
/// `pages` have no common divisor.
inline std::vector<kernels::kv_page>
scattered(std::size_t count, std::size_t first, std::size_t step,
          std::size_t pages) {
  std::vector<kernels::kv_page> out(count);
  for (std::size_t i = 0; i != count; ++i)
    out[i] = static_cast<kernels::kv_page>((first + i * step) % pages);
  return out;
}

inline std::size_t kv_pages_for(std::size_t positions) {
  return (positions + kernels::kv_page_positions - 1)
         / kernels::kv_page_positions;
}

/// One sequence and the cache that it has for itself.
class one_sequence_cache {
public:
  one_sequence_cache(kernels::kv_type type, std::size_t positions,
                     const kernels::attention_shape& s)
    : memory_(type, kv_pages_for(positions), s),
      pages_(kv_pages_for(positions)) {
    std::iota(pages_.begin(), pages_.end(), 0U);
  }

  void clear() { positions_ = 0; }
  void append(kernels::backend& on, kernels::matrix_view<const float> k_TKH,
              kernels::matrix_view<const float> v_TKH) {
    const kernels::paged_rows rows[] = {{pages_, positions_, k_TKH.rows}};
    on.append_paged(memory_.view(), k_TKH, v_TKH, rows);
    positions_ += k_TKH.rows;
  }
  /// Of the newest rows.
  void attend(kernels::backend& on, kernels::matrix_view<float> o_TNH,
              kernels::matrix_view<const float> q_TNH,
              kernels::attention_shape s) const {
    s.batch = 1;
    s.tokens = q_TNH.rows;
    const kernels::paged_rows rows[] = {
      {pages_, positions_ - q_TNH.rows, q_TNH.rows}};
    on.attention_paged(o_TNH, q_TNH, memory_.view(), rows, s);
  }

private:
  kv_memory memory_;
  std::vector<kernels::kv_page> pages_;
  std::size_t positions_ = 0;
};

} // namespace shoal::tests
