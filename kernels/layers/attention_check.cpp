// kernels/layers/attention_check.cpp -- checks heads and shapes.
#include "kernels/layers/attention_check.hpp"

#include "kernels/common/check.hpp"

namespace shoal::kernels {

void check_heads(const attention_shape& shape) noexcept {
  SHOAL_KERNEL_ASSERT(shape.kv_heads != 0 && shape.head_size != 0);
  SHOAL_KERNEL_ASSERT(shape.heads != 0 && shape.heads % shape.kv_heads == 0);
}

void check_attention(matrix_view<const float> o_TNH,
                     matrix_view<const float> q_TNH,
                     matrix_view<const float> k_TKH,
                     matrix_view<const float> v_TKH,
                     const attention_shape& shape) noexcept {
  check_heads(shape);
  auto rows = shape.batch * shape.tokens;
  SHOAL_KERNEL_ASSERT(has_shape(o_TNH, rows, shape.heads * shape.head_size));
  SHOAL_KERNEL_ASSERT(has_shape(q_TNH, rows, shape.heads * shape.head_size));
  SHOAL_KERNEL_ASSERT(has_shape(k_TKH, rows, shape.kv_heads * shape.head_size));
  SHOAL_KERNEL_ASSERT(has_shape(v_TKH, rows, shape.kv_heads * shape.head_size));
}

} // namespace shoal::kernels
