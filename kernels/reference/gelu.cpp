// kernels/reference/gelu.cpp -- value and slope of both forms.
#include "kernels/check.hpp"
#include "kernels/reference/backend.hpp"

#include <cmath>

namespace shoal::kernels::reference {

namespace {

struct value_and_slope {
  double value;
  double slope;
};

value_and_slope gelu_at(double x, gelu_form form) {
  if (form == gelu_form::exact) {
    const double phi = 0.5 * (1 + std::erf(x * std::sqrt(0.5)));
    const double density =
      std::exp(-0.5 * x * x) / std::sqrt(2 * 3.14159265358979323846);
    return {x * phi, phi + x * density};
  }
  const double root = std::sqrt(2 / 3.14159265358979323846);
  const double t = std::tanh(root * (x + 0.044715 * x * x * x));
  const double inner = root * (1 + 3 * 0.044715 * x * x);
  // Far out tanh is 1 and what it is multiplied with may be infinite.
  const double bend = t * t == 1 ? 0 : 0.5 * x * (1 - t * t) * inner;
  return {0.5 * x * (1 + t), 0.5 * (1 + t) + bend};
}

} // namespace

void reference_backend::gelu(matrix_view<float> y_TF,
                             matrix_view<const float> x_TF, gelu_form form) {
  SHOAL_KERNEL_ASSERT(same_shape(y_TF, x_TF));
  for (std::size_t t = 0; t != x_TF.rows; ++t)
    for (std::size_t f = 0; f != x_TF.cols; ++f)
      y_TF(t, f) = static_cast<float>(gelu_at(x_TF(t, f), form).value);
}

void reference_backend::gelu_backward(matrix_view<float> dx_TF,
                                      matrix_view<const float> dy_TF,
                                      matrix_view<const float> x_TF,
                                      gelu_form form) {
  SHOAL_KERNEL_ASSERT(same_shape(dx_TF, x_TF) && same_shape(dy_TF, x_TF));
  for (std::size_t t = 0; t != x_TF.rows; ++t)
    for (std::size_t f = 0; f != x_TF.cols; ++f)
      dx_TF(t, f) =
        static_cast<float>(dy_TF(t, f) * gelu_at(x_TF(t, f), form).slope);
}

void reference_backend::geglu(matrix_view<float> y_TF,
                              matrix_view<const float> gate_TF,
                              matrix_view<const float> up_TF, gelu_form form) {
  SHOAL_KERNEL_ASSERT(same_shape(y_TF, gate_TF) && same_shape(y_TF, up_TF));
  for (std::size_t t = 0; t != y_TF.rows; ++t)
    for (std::size_t f = 0; f != y_TF.cols; ++f)
      y_TF(t, f) =
        static_cast<float>(gelu_at(gate_TF(t, f), form).value * up_TF(t, f));
}

void reference_backend::geglu_backward(matrix_view<float> dgate_TF,
                                       matrix_view<float> dup_TF,
                                       matrix_view<const float> dy_TF,
                                       matrix_view<const float> gate_TF,
                                       matrix_view<const float> up_TF,
                                       gelu_form form) {
  SHOAL_KERNEL_ASSERT(same_shape(dgate_TF, gate_TF) && same_shape(dup_TF, up_TF)
                      && same_shape(dy_TF, gate_TF)
                      && same_shape(dy_TF, up_TF));
  for (std::size_t t = 0; t != dy_TF.rows; ++t)
    for (std::size_t f = 0; f != dy_TF.cols; ++f) {
      const double dy = dy_TF(t, f);
      const double up = up_TF(t, f);
      const auto [value, slope] = gelu_at(gate_TF(t, f), form);
      dgate_TF(t, f) = static_cast<float>(dy * up * slope);
      dup_TF(t, f) = static_cast<float>(dy * value);
    }
}

} // namespace shoal::kernels::reference
