// kernels/reference/layers/rmsnorm.hpp -- normalization row by row.
//
// Of floats for the backend, which checks shapes; of doubles for the test that
// compares gradients with differences. Private to kernels/reference.
#pragma once

#include "kernels/layers/rmsnorm.hpp"

#include <cmath>

namespace shoal::kernels::reference::loops {

template <class Scalar>
void rmsnorm(matrix_view<Scalar> y_TD, vector_view<Scalar> r_T,
             matrix_view<const Scalar> x_TD, vector_view<const Scalar> w_D,
             float eps, float offset) {
  for (std::size_t t = 0; t != x_TD.rows; ++t) {
    double squares = 0;
    for (std::size_t d = 0; d != x_TD.cols; ++d)
      squares += double{x_TD(t, d)} * x_TD(t, d);
    auto mean = squares / static_cast<double>(x_TD.cols);
    auto r = static_cast<Scalar>(1 / std::sqrt(mean + double{eps}));
    if (!r_T.empty())
      r_T[t] = r;
    for (std::size_t d = 0; d != x_TD.cols; ++d)
      y_TD(t, d) = x_TD(t, d) * r * (w_D[d] + offset);
  }
}

template <class Scalar>
void rmsnorm_input_gradient(matrix_view<Scalar> dx_TD,
                            matrix_view<const Scalar> dy_TD,
                            matrix_view<const Scalar> x_TD,
                            vector_view<const Scalar> w_D,
                            vector_view<const Scalar> r_T, into mode,
                            float offset) {
  for (std::size_t t = 0; t != x_TD.rows; ++t) {
    double dot = 0;
    for (std::size_t d = 0; d != x_TD.cols; ++d)
      dot += double{dy_TD(t, d)} * (double{w_D[d]} + offset) * x_TD(t, d);
    double r = r_T[t];
    auto pull = dot * r * r / static_cast<double>(x_TD.cols);
    for (std::size_t d = 0; d != x_TD.cols; ++d) {
      auto g = double{dy_TD(t, d)} * (double{w_D[d]} + offset);
      auto dx = r * (g - pull * x_TD(t, d));
      auto before = mode == into::add ? dx_TD(t, d) : Scalar{0};
      dx_TD(t, d) = static_cast<Scalar>(before + dx);
    }
  }
}

template <class Scalar>
void rmsnorm_weight_gradient(vector_view<Scalar> dw_D,
                             matrix_view<const Scalar> dy_TD,
                             matrix_view<const Scalar> x_TD,
                             vector_view<const Scalar> r_T) {
  for (std::size_t d = 0; d != dw_D.size; ++d) {
    double sum = dw_D[d];
    for (std::size_t t = 0; t != x_TD.rows; ++t)
      sum += double{dy_TD(t, d)} * x_TD(t, d) * r_T[t];
    dw_D[d] = static_cast<Scalar>(sum);
  }
}

} // namespace shoal::kernels::reference::loops
