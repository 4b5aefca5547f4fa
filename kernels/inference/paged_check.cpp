// kernels/inference/paged_check.cpp -- checks pages and shapes.
#include "kernels/inference/paged_check.hpp"

#include "kernels/common/check.hpp"
#include "kernels/layers/attention_check.hpp"

namespace shoal::kernels {
namespace {

/// The pages of a sequence from position `from` to its last row exist.
void check_pages(const kv_pages& cache, const paged_rows& s, std::size_t from) {
  if (s.rows == 0)
    return;
  const auto end = (s.first + s.rows - 1) / kv_page_positions + 1;
  SHOAL_KERNEL_ASSERT(s.pages.size >= end);
  for (auto p = from / kv_page_positions; p != end; ++p)
    SHOAL_KERNEL_ASSERT(s.pages[p] < cache.pages);
}

} // namespace

void check_append_paged(const kv_pages& cache, matrix_view<const float> k_TKH,
                        matrix_view<const float> v_TKH,
                        std::span<const paged_rows> sequences) noexcept {
  std::size_t rows = 0;
  for (const paged_rows& s : sequences) {
    check_pages(cache, s, s.first);
    rows += s.rows;
  }
  const auto cols = cache.kv_heads * cache.head_size;
  SHOAL_KERNEL_ASSERT(has_shape(k_TKH, rows, cols));
  SHOAL_KERNEL_ASSERT(has_shape(v_TKH, rows, cols));
}

void check_attention_paged(matrix_view<const float> o_TNH,
                           matrix_view<const float> q_TNH,
                           const kv_pages& cache,
                           std::span<const paged_rows> sequences,
                           const attention_shape& shape) noexcept {
  check_heads(shape);
  std::size_t rows = 0;
  for (const paged_rows& s : sequences) {
    check_pages(cache, s, shape.first_key(s.first + 1));
    rows += s.rows;
  }
  SHOAL_KERNEL_ASSERT(shape.batch == 1 && shape.tokens == rows);
  SHOAL_KERNEL_ASSERT(cache.kv_heads == shape.kv_heads);
  SHOAL_KERNEL_ASSERT(cache.head_size == shape.head_size);
  const auto cols = shape.heads * shape.head_size;
  SHOAL_KERNEL_ASSERT(has_shape(o_TNH, rows, cols));
  SHOAL_KERNEL_ASSERT(has_shape(q_TNH, rows, cols));
}

} // namespace shoal::kernels
