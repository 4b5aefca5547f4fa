// kernels/reference/layers/layernorm.hpp -- normalization row by row.
//
// Of floats for the backend, which checks shapes; of doubles for the test that
// compares gradients with differences. Private to kernels/reference.
#pragma once

#include "kernels/layers/layernorm.hpp"

#include <cmath>

namespace shoal::kernels::reference::loops {

template <class Scalar>
void layernorm(matrix_view<Scalar> y_TD, matrix_view<Scalar> stats_2T,
               matrix_view<const Scalar> x_TD, vector_view<const Scalar> w_D,
               vector_view<const Scalar> b_D, float eps) {
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
      stats_2T(0, t) = static_cast<Scalar>(mean);
      stats_2T(1, t) = static_cast<Scalar>(r);
    }
    for (std::size_t d = 0; d != x_TD.cols; ++d)
      y_TD(t, d) =
        static_cast<Scalar>((x_TD(t, d) - mean) * r * w_D[d] + b_D[d]);
  }
}

template <class Scalar>
void layernorm_input_gradient(matrix_view<Scalar> dx_TD,
                              matrix_view<const Scalar> dy_TD,
                              matrix_view<const Scalar> x_TD,
                              vector_view<const Scalar> w_D,
                              matrix_view<const Scalar> stats_2T, into mode) {
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
      const auto before = mode == into::add ? dx_TD(t, d) : Scalar{0};
      dx_TD(t, d) =
        static_cast<Scalar>(before + r * (g - sum / D - xh * dot / D));
    }
  }
}

template <class Scalar>
void layernorm_weight_gradient(vector_view<Scalar> dw_D,
                               vector_view<Scalar> db_D,
                               matrix_view<const Scalar> dy_TD,
                               matrix_view<const Scalar> x_TD,
                               matrix_view<const Scalar> stats_2T) {
  for (std::size_t d = 0; d != dw_D.size; ++d) {
    double weight = dw_D[d];
    double bias = db_D[d];
    for (std::size_t t = 0; t != x_TD.rows; ++t) {
      const double dy = dy_TD(t, d);
      weight += dy * (double{x_TD(t, d)} - stats_2T(0, t)) * stats_2T(1, t);
      bias += dy;
    }
    dw_D[d] = static_cast<Scalar>(weight);
    db_D[d] = static_cast<Scalar>(bias);
  }
}

} // namespace shoal::kernels::reference::loops
