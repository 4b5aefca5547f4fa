// kernels/reference/layers/gelu.hpp -- value and slope of both forms.
//
// Of floats for the backend, which checks shapes; of doubles for the test that
// compares gradients with differences. Private to kernels/reference.
#pragma once

#include "kernels/layers/gelu.hpp"

#include <cmath>

namespace shoal::kernels::reference::loops {

struct value_and_slope {
  double value;
  double slope;
};

inline value_and_slope gelu_at(double x, gelu_form form) {
  if (form == gelu_form::exact) {
    const double phi = 0.5 * (1 + std::erf(x * std::sqrt(0.5)));
    const double density =
      std::exp(-0.5 * x * x) / std::sqrt(2 * 3.14159265358979323846);
    return {x * phi, phi + x * density};
  }
  const double root = std::sqrt(2 / 3.14159265358979323846);
  const double t = std::tanh(root * (x + 0.044715 * x * x * x));
  const double inner = root * (1 + 3 * 0.044715 * x * x);
  // For large |x| tanh is 1, and the factor beside it may be infinite.
  const double bend = t * t == 1 ? 0 : 0.5 * x * (1 - t * t) * inner;
  return {0.5 * x * (1 + t), 0.5 * (1 + t) + bend};
}

template <class Scalar>
void gelu(matrix_view<Scalar> y_TF, matrix_view<const Scalar> x_TF,
          gelu_form form) {
  for (std::size_t t = 0; t != x_TF.rows; ++t)
    for (std::size_t f = 0; f != x_TF.cols; ++f)
      y_TF(t, f) = static_cast<Scalar>(gelu_at(x_TF(t, f), form).value);
}

template <class Scalar>
void gelu_backward(matrix_view<Scalar> dx_TF, matrix_view<const Scalar> dy_TF,
                   matrix_view<const Scalar> x_TF, gelu_form form,
                   matrix_view<Scalar> y_TF = {}) {
  for (std::size_t t = 0; t != x_TF.rows; ++t)
    for (std::size_t f = 0; f != x_TF.cols; ++f) {
      const double dy = dy_TF(t, f);
      const auto [value, slope] = gelu_at(x_TF(t, f), form);
      dx_TF(t, f) = static_cast<Scalar>(dy * slope);
      if (!y_TF.empty())
        y_TF(t, f) = static_cast<Scalar>(value);
    }
}

template <class Scalar>
void geglu(matrix_view<Scalar> y_TF, matrix_view<const Scalar> gate_TF,
           matrix_view<const Scalar> up_TF, gelu_form form) {
  for (std::size_t t = 0; t != y_TF.rows; ++t)
    for (std::size_t f = 0; f != y_TF.cols; ++f)
      y_TF(t, f) =
        static_cast<Scalar>(gelu_at(gate_TF(t, f), form).value * up_TF(t, f));
}

template <class Scalar>
void geglu_backward(matrix_view<Scalar> dgate_TF, matrix_view<Scalar> dup_TF,
                    matrix_view<const Scalar> dy_TF,
                    matrix_view<const Scalar> gate_TF,
                    matrix_view<const Scalar> up_TF, gelu_form form,
                    matrix_view<Scalar> y_TF = {}) {
  for (std::size_t t = 0; t != dy_TF.rows; ++t)
    for (std::size_t f = 0; f != dy_TF.cols; ++f) {
      const double dy = dy_TF(t, f);
      const double up = up_TF(t, f);
      const auto [value, slope] = gelu_at(gate_TF(t, f), form);
      dgate_TF(t, f) = static_cast<Scalar>(dy * up * slope);
      dup_TF(t, f) = static_cast<Scalar>(dy * value);
      if (!y_TF.empty())
        y_TF(t, f) = static_cast<Scalar>(value * up);
    }
}

} // namespace shoal::kernels::reference::loops
