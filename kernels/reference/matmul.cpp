// kernels/reference/matmul.cpp -- products in plain loops.
#include "kernels/check.hpp"
#include "kernels/reference/backend.hpp"

namespace shoal::kernels::reference {

void reference_backend::matmul(matrix_view<float> y_TO,
                               matrix_view<const float> x_TI,
                               matrix_view<const float> w_OI) {
  SHOAL_KERNEL_ASSERT(y_TO.rows == x_TI.rows && y_TO.cols == w_OI.rows
                      && x_TI.cols == w_OI.cols);
  for (std::size_t t = 0; t != y_TO.rows; ++t)
    for (std::size_t o = 0; o != y_TO.cols; ++o) {
      double sum = 0;
      for (std::size_t i = 0; i != x_TI.cols; ++i)
        sum += double{x_TI(t, i)} * w_OI(o, i);
      y_TO(t, o) = static_cast<float>(sum);
    }
}

void reference_backend::matmul_input_gradient(matrix_view<float> dx_TI,
                                              matrix_view<const float> dy_TO,
                                              matrix_view<const float> w_OI,
                                              into mode) {
  SHOAL_KERNEL_ASSERT(dx_TI.rows == dy_TO.rows && dx_TI.cols == w_OI.cols
                      && dy_TO.cols == w_OI.rows);
  for (std::size_t t = 0; t != dx_TI.rows; ++t)
    for (std::size_t i = 0; i != dx_TI.cols; ++i) {
      double sum = mode == into::add ? dx_TI(t, i) : 0;
      for (std::size_t o = 0; o != dy_TO.cols; ++o)
        sum += double{dy_TO(t, o)} * w_OI(o, i);
      dx_TI(t, i) = static_cast<float>(sum);
    }
}

void reference_backend::matmul_weight_gradient(matrix_view<float> dw_OI,
                                               matrix_view<const float> dy_TO,
                                               matrix_view<const float> x_TI) {
  SHOAL_KERNEL_ASSERT(dw_OI.rows == dy_TO.cols && dw_OI.cols == x_TI.cols
                      && dy_TO.rows == x_TI.rows);
  for (std::size_t o = 0; o != dw_OI.rows; ++o)
    for (std::size_t i = 0; i != dw_OI.cols; ++i) {
      double sum = dw_OI(o, i);
      for (std::size_t t = 0; t != x_TI.rows; ++t)
        sum += double{dy_TO(t, o)} * x_TI(t, i);
      dw_OI(o, i) = static_cast<float>(sum);
    }
}

} // namespace shoal::kernels::reference
