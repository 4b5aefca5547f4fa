// kernels/reference/layernorm.cpp -- normalization row by row.
#include "kernels/check.hpp"
#include "kernels/reference/backend.hpp"

#include <cmath>

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
  const auto D = static_cast<double>(x_TD.cols);
  for (std::size_t t = 0; t != x_TD.rows; ++t) {
    double sum = 0;
    for (std::size_t d = 0; d != x_TD.cols; ++d)
      sum += x_TD(t, d);
    const auto mean = sum / D;
    double squares = 0;
    for (std::size_t d = 0; d != x_TD.cols; ++d)
      squares += (x_TD(t, d) - mean) * (x_TD(t, d) - mean);
    const auto r = 1 / std::sqrt(squares / D + double{eps});
    if (!stats_2T.empty()) {
      stats_2T(0, t) = static_cast<float>(mean);
      stats_2T(1, t) = static_cast<float>(r);
    }
    for (std::size_t d = 0; d != x_TD.cols; ++d)
      y_TD(t, d) =
        static_cast<float>((x_TD(t, d) - mean) * r * w_D[d] + b_D[d]);
  }
}

void reference_backend::layernorm_input_gradient(
  matrix_view<float> dx_TD, matrix_view<const float> dy_TD,
  matrix_view<const float> x_TD, vector_view<const float> w_D,
  matrix_view<const float> stats_2T, into mode) {
  check(dx_TD, x_TD, stats_2T);
  check(dy_TD, x_TD, stats_2T);
  SHOAL_KERNEL_ASSERT(w_D.size == x_TD.cols && stats_2T.rows == 2);
  const auto D = static_cast<double>(x_TD.cols);
  for (std::size_t t = 0; t != x_TD.rows; ++t) {
    const double mean = stats_2T(0, t);
    const double r = stats_2T(1, t);
    double sum = 0;
    double dot = 0;
    for (std::size_t d = 0; d != x_TD.cols; ++d) {
      const auto g = double{dy_TD(t, d)} * w_D[d];
      sum += g;
      dot += g * (x_TD(t, d) - mean) * r;
    }
    for (std::size_t d = 0; d != x_TD.cols; ++d) {
      const auto g = double{dy_TD(t, d)} * w_D[d];
      const auto xh = (x_TD(t, d) - mean) * r;
      const auto before = mode == into::add ? dx_TD(t, d) : 0.0f;
      dx_TD(t, d) =
        static_cast<float>(before + r * (g - sum / D - xh * dot / D));
    }
  }
}

void reference_backend::layernorm_weight_gradient(
  vector_view<float> dw_D, vector_view<float> db_D,
  matrix_view<const float> dy_TD, matrix_view<const float> x_TD,
  matrix_view<const float> stats_2T) {
  check(dy_TD, x_TD, stats_2T);
  SHOAL_KERNEL_ASSERT(dw_D.size == x_TD.cols && db_D.size == x_TD.cols
                      && stats_2T.rows == 2);
  for (std::size_t d = 0; d != dw_D.size; ++d) {
    double weight = dw_D[d];
    double bias = db_D[d];
    for (std::size_t t = 0; t != x_TD.rows; ++t) {
      const double dy = dy_TD(t, d);
      weight += dy * (double{x_TD(t, d)} - stats_2T(0, t)) * stats_2T(1, t);
      bias += dy;
    }
    dw_D[d] = static_cast<float>(weight);
    db_D[d] = static_cast<float>(bias);
  }
}

} // namespace shoal::kernels::reference
