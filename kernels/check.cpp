// kernels/check.cpp -- checks preconditions; aborts if one is violated.
#include "kernels/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace shoal::kernels {

void check_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "[kernels] %s:%d: violated: %s\n", file, line,
               condition);
  std::abort();
}

namespace {

void check_heads(const attention_shape& shape) {
  SHOAL_KERNEL_ASSERT(shape.kv_heads != 0 && shape.head_size != 0);
  SHOAL_KERNEL_ASSERT(shape.heads != 0 && shape.heads % shape.kv_heads == 0);
}

bool is_shape(matrix_view<const float> x, std::size_t rows, std::size_t cols) {
  return x.rows == rows && x.cols == cols;
}

} // namespace

void check_attention(matrix_view<const float> o_TNH,
                     matrix_view<const float> q_TNH,
                     matrix_view<const float> k_TKH,
                     matrix_view<const float> v_TKH,
                     const attention_shape& shape) noexcept {
  check_heads(shape);
  auto rows = shape.batch * shape.tokens;
  SHOAL_KERNEL_ASSERT(is_shape(o_TNH, rows, shape.heads * shape.head_size));
  SHOAL_KERNEL_ASSERT(is_shape(q_TNH, rows, shape.heads * shape.head_size));
  SHOAL_KERNEL_ASSERT(is_shape(k_TKH, rows, shape.kv_heads * shape.head_size));
  SHOAL_KERNEL_ASSERT(is_shape(v_TKH, rows, shape.kv_heads * shape.head_size));
}

void check_attention_cached(matrix_view<const float> o_TNH,
                            matrix_view<const float> q_TNH,
                            matrix_view<const float> k_PKH,
                            matrix_view<const float> v_PKH,
                            const attention_shape& shape) noexcept {
  check_heads(shape);
  SHOAL_KERNEL_ASSERT(shape.batch == 1 && k_PKH.rows >= shape.tokens);
  auto cols = shape.heads * shape.head_size;
  auto kv_cols = shape.kv_heads * shape.head_size;
  SHOAL_KERNEL_ASSERT(is_shape(o_TNH, shape.tokens, cols));
  SHOAL_KERNEL_ASSERT(is_shape(q_TNH, shape.tokens, cols));
  SHOAL_KERNEL_ASSERT(k_PKH.cols == kv_cols);
  SHOAL_KERNEL_ASSERT(is_shape(v_PKH, k_PKH.rows, kv_cols));
}

} // namespace shoal::kernels
