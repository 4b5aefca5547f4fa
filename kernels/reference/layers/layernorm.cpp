// kernels/reference/layers/layernorm.cpp -- normalization of floats.
#include "kernels/reference/layers/layernorm.hpp"

#include "kernels/common/check.hpp"
#include "kernels/reference/backend.hpp"

namespace shoal::kernels::reference {

namespace {

void check(matrix_view<const float> y_TD, matrix_view<const float> x_TD,
           matrix_view<const float> stats_2T) {
  SHOAL_KERNEL_ASSERT(
    same_shape(y_TD, x_TD)
    && (stats_2T.empty()
        || (stats_2T.rows == 2 && stats_2T.cols == x_TD.rows)));
}

} // namespace

void reference_backend::layernorm(matrix_view<float> y_TD,
                                  matrix_view<float> stats_2T,
                                  matrix_view<const float> x_TD,
                                  vector_view<const float> w_D,
                                  vector_view<const float> b_D, float eps) {
  check(y_TD, x_TD, stats_2T);
  SHOAL_KERNEL_ASSERT(w_D.size == x_TD.cols && b_D.size == x_TD.cols
                      && eps > 0);
  loops::layernorm<float>(y_TD, stats_2T, x_TD, w_D, b_D, eps);
}

void reference_backend::layernorm_input_gradient(
  matrix_view<float> dx_TD, matrix_view<const float> dy_TD,
  matrix_view<const float> x_TD, vector_view<const float> w_D,
  matrix_view<const float> stats_2T, into mode) {
  check(dx_TD, x_TD, stats_2T);
  check(dy_TD, x_TD, stats_2T);
  SHOAL_KERNEL_ASSERT(w_D.size == x_TD.cols && stats_2T.rows == 2);
  loops::layernorm_input_gradient<float>(dx_TD, dy_TD, x_TD, w_D, stats_2T,
                                         mode);
}

void reference_backend::layernorm_weight_gradient(
  vector_view<float> dw_D, vector_view<float> db_D,
  matrix_view<const float> dy_TD, matrix_view<const float> x_TD,
  matrix_view<const float> stats_2T) {
  check(dy_TD, x_TD, stats_2T);
  SHOAL_KERNEL_ASSERT(dw_D.size == x_TD.cols && db_D.size == x_TD.cols
                      && stats_2T.rows == 2);
  loops::layernorm_weight_gradient<float>(dw_D, db_D, dy_TD, x_TD, stats_2T);
}

} // namespace shoal::kernels::reference
