// kernels/reference/rmsnorm.cpp -- normalization row by row.
#include "kernels/check.hpp"
#include "kernels/reference/backend.hpp"

#include <cmath>

namespace shoal::kernels::reference {

void reference_backend::rmsnorm(matrix_view<float> y_TD, vector_view<float> r_T,
                                matrix_view<const float> x_TD,
                                vector_view<const float> w_D, float eps,
                                float offset) {
  SHOAL_KERNEL_ASSERT(y_TD.rows == x_TD.rows && y_TD.cols == x_TD.cols
                      && w_D.size == x_TD.cols && eps > 0
                      && (r_T.empty() || r_T.size == x_TD.rows));
  for (std::size_t t = 0; t != x_TD.rows; ++t) {
    double squares = 0;
    for (std::size_t d = 0; d != x_TD.cols; ++d)
      squares += double{x_TD(t, d)} * x_TD(t, d);
    auto mean = squares / static_cast<double>(x_TD.cols);
    auto r = static_cast<float>(1 / std::sqrt(mean + double{eps}));
    if (!r_T.empty())
      r_T[t] = r;
    for (std::size_t d = 0; d != x_TD.cols; ++d)
      y_TD(t, d) = x_TD(t, d) * r * (w_D[d] + offset);
  }
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
  for (std::size_t t = 0; t != x_TD.rows; ++t) {
    double dot = 0;
    for (std::size_t d = 0; d != x_TD.cols; ++d)
      dot += double{dy_TD(t, d)} * (double{w_D[d]} + offset) * x_TD(t, d);
    double r = r_T[t];
    auto pull = dot * r * r / static_cast<double>(x_TD.cols);
    for (std::size_t d = 0; d != x_TD.cols; ++d) {
      auto g = double{dy_TD(t, d)} * (double{w_D[d]} + offset);
      auto dx = r * (g - pull * x_TD(t, d));
      auto before = mode == into::add ? dx_TD(t, d) : 0.0f;
      dx_TD(t, d) = static_cast<float>(before + dx);
    }
  }
}

void reference_backend::rmsnorm_weight_gradient(vector_view<float> dw_D,
                                                matrix_view<const float> dy_TD,
                                                matrix_view<const float> x_TD,
                                                vector_view<const float> r_T) {
  SHOAL_KERNEL_ASSERT(dw_D.size == x_TD.cols && dy_TD.rows == x_TD.rows
                      && dy_TD.cols == x_TD.cols && r_T.size == x_TD.rows);
  for (std::size_t d = 0; d != dw_D.size; ++d) {
    double sum = dw_D[d];
    for (std::size_t t = 0; t != x_TD.rows; ++t)
      sum += double{dy_TD(t, d)} * x_TD(t, d) * r_T[t];
    dw_D[d] = static_cast<float>(sum);
  }
}

} // namespace shoal::kernels::reference
