// kernels/reference/layers/rmsnorm.cpp -- normalization of floats.
#include "kernels/reference/layers/rmsnorm.hpp"

#include "kernels/common/check.hpp"
#include "kernels/reference/backend.hpp"

namespace shoal::kernels::reference {

void reference_backend::rmsnorm(matrix_view<float> y_TD, vector_view<float> r_T,
                                matrix_view<const float> x_TD,
                                vector_view<const float> w_D, float eps,
                                float offset) {
  SHOAL_KERNEL_ASSERT(y_TD.rows == x_TD.rows && y_TD.cols == x_TD.cols
                      && w_D.size == x_TD.cols && eps > 0
                      && (r_T.empty() || r_T.size == x_TD.rows));
  loops::rmsnorm<float>(y_TD, r_T, x_TD, w_D, eps, offset);
}

void reference_backend::rmsnorm_input_gradient(matrix_view<float> dx_TD,
                                               matrix_view<const float> dy_TD,
                                               matrix_view<const float> x_TD,
                                               vector_view<const float> w_D,
                                               vector_view<const float> r_T,
                                               into mode, float offset) {
  SHOAL_KERNEL_ASSERT(dx_TD.rows == x_TD.rows && dx_TD.cols == x_TD.cols
                      && dy_TD.rows == x_TD.rows && dy_TD.cols == x_TD.cols
                      && w_D.size == x_TD.cols && r_T.size == x_TD.rows);
  loops::rmsnorm_input_gradient<float>(dx_TD, dy_TD, x_TD, w_D, r_T, mode,
                                       offset);
}

void reference_backend::rmsnorm_weight_gradient(vector_view<float> dw_D,
                                                matrix_view<const float> dy_TD,
                                                matrix_view<const float> x_TD,
                                                vector_view<const float> r_T) {
  SHOAL_KERNEL_ASSERT(dw_D.size == x_TD.cols && dy_TD.rows == x_TD.rows
                      && dy_TD.cols == x_TD.cols && r_T.size == x_TD.rows);
  loops::rmsnorm_weight_gradient<float>(dw_D, dy_TD, x_TD, r_T);
}

} // namespace shoal::kernels::reference
