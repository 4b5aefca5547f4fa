// kernels/reference/layers/attention.cpp -- attention of floats.
#include "kernels/reference/layers/attention.hpp"

#include "kernels/common/check.hpp"
#include "kernels/layers/attention_check.hpp"
#include "kernels/reference/backend.hpp"

namespace shoal::kernels::reference {

void reference_backend::attention(matrix_view<float> o_TNH,
                                  matrix_view<float> lse_NT,
                                  matrix_view<const float> q_TNH,
                                  matrix_view<const float> k_TKH,
                                  matrix_view<const float> v_TKH,
                                  const attention_shape& shape) {
  check_attention(o_TNH, q_TNH, k_TKH, v_TKH, shape);
  SHOAL_KERNEL_ASSERT(lse_NT.empty()
                      || (lse_NT.rows == shape.batch * shape.heads
                          && lse_NT.cols == shape.tokens));
  loops::attention<float>(o_TNH, lse_NT, q_TNH, k_TKH, v_TKH, shape);
}

void reference_backend::attention_backward(
  matrix_view<float> dq_TNH, matrix_view<float> dk_TKH,
  matrix_view<float> dv_TKH, matrix_view<const float> do_TNH,
  matrix_view<const float> q_TNH, matrix_view<const float> k_TKH,
  matrix_view<const float> v_TKH, matrix_view<const float> o_TNH,
  matrix_view<const float> lse_NT, const attention_shape& shape) {
  check_attention(o_TNH, q_TNH, k_TKH, v_TKH, shape);
  check_attention(do_TNH, dq_TNH, dk_TKH, dv_TKH, shape);
  SHOAL_KERNEL_ASSERT(lse_NT.rows == shape.batch * shape.heads
                      && lse_NT.cols == shape.tokens);
  loops::attention_backward<float>(dq_TNH, dk_TKH, dv_TKH, do_TNH, q_TNH, k_TKH,
                                   v_TKH, o_TNH, lse_NT, shape);
}

} // namespace shoal::kernels::reference
