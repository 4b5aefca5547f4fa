// kernels/reference/layers/swiglu.hpp -- silu(gate) * up and its gradients.
//
// Of floats for the backend, which checks shapes; of doubles for the test that
// compares gradients with differences. Private to kernels/reference.
#pragma once

#include "kernels/layers/swiglu.hpp"

#include <cmath>

namespace shoal::kernels::reference::loops {

template <class Scalar>
void swiglu(matrix_view<Scalar> y_TF, matrix_view<const Scalar> gate_TF,
            matrix_view<const Scalar> up_TF) {
  for (std::size_t t = 0; t != y_TF.rows; ++t)
    for (std::size_t f = 0; f != y_TF.cols; ++f) {
      double g = gate_TF(t, f);
      y_TF(t, f) = static_cast<Scalar>(g / (1 + std::exp(-g)) * up_TF(t, f));
    }
}

template <class Scalar>
void swiglu_backward(matrix_view<Scalar> dgate_TF, matrix_view<Scalar> dup_TF,
                     matrix_view<const Scalar> dy_TF,
                     matrix_view<const Scalar> gate_TF,
                     matrix_view<const Scalar> up_TF,
                     matrix_view<Scalar> y_TF = {}) {
  for (std::size_t t = 0; t != dy_TF.rows; ++t)
    for (std::size_t f = 0; f != dy_TF.cols; ++f) {
      double g = gate_TF(t, f), u = up_TF(t, f), dy = dy_TF(t, f);
      auto sigmoid = 1 / (1 + std::exp(-g));
      auto slope = sigmoid * (1 + g * (1 - sigmoid));
      dgate_TF(t, f) = static_cast<Scalar>(dy * u * slope);
      dup_TF(t, f) = static_cast<Scalar>(dy * g * sigmoid);
      if (!y_TF.empty())
        y_TF(t, f) = static_cast<Scalar>(g * sigmoid * u);
    }
}

} // namespace shoal::kernels::reference::loops
