// kernels/reference/layers/matmul.cpp -- products of floats.
#include "kernels/reference/layers/matmul.hpp"

#include "kernels/common/check.hpp"
#include "kernels/reference/backend.hpp"

namespace shoal::kernels::reference {

using loops::weight;

void reference_backend::matmul(matrix_view<float> y_TO,
                               matrix_view<const float> x_TI,
                               matrix_view<const float> w_OI,
                               vector_view<const float> bias_O,
                               weight_order order, factor_type factors) {
  const weight<const float> w{w_OI, order};
  SHOAL_KERNEL_ASSERT(y_TO.rows == x_TI.rows && y_TO.cols == w.outputs()
                      && x_TI.cols == w.inputs()
                      && (bias_O.empty() || bias_O.size == y_TO.cols));
  loops::matmul<float>(y_TO, x_TI, w, bias_O, {factors});
}

void reference_backend::matmul_input_gradient(matrix_view<float> dx_TI,
                                              matrix_view<const float> dy_TO,
                                              matrix_view<const float> w_OI,
                                              into mode, weight_order order,
                                              factor_type factors) {
  const weight<const float> w{w_OI, order};
  SHOAL_KERNEL_ASSERT(dx_TI.rows == dy_TO.rows && dx_TI.cols == w.inputs()
                      && dy_TO.cols == w.outputs());
  loops::matmul_input_gradient<float>(dx_TI, dy_TO, w, mode, {factors});
}

void reference_backend::matmul_weight_gradient(matrix_view<float> dw_OI,
                                               matrix_view<const float> dy_TO,
                                               matrix_view<const float> x_TI,
                                               weight_order order,
                                               factor_type factors) {
  const weight<float> dw{dw_OI, order};
  SHOAL_KERNEL_ASSERT(dw.outputs() == dy_TO.cols && dw.inputs() == x_TI.cols
                      && dy_TO.rows == x_TI.rows);
  loops::matmul_weight_gradient<float>(dw, dy_TO, x_TI, {factors});
}

void reference_backend::bias_gradient(vector_view<float> db_O,
                                      matrix_view<const float> dy_TO) {
  SHOAL_KERNEL_ASSERT(db_O.size == dy_TO.cols);
  loops::bias_gradient<float>(db_O, dy_TO);
}

} // namespace shoal::kernels::reference
