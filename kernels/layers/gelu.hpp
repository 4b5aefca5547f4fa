// kernels/layers/gelu.hpp -- the Gaussian error linear unit, alone and as a gate.
//
//   exact: gelu(x) = x / 2 * (1 + erf(x / sqrt(2)))
//   tanh:  gelu(x) = x / 2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
//   geglu: y = gelu(gate) * up
//
// Shapes:    T tokens, F values of the hidden layer.
// Precision: exp to a few ulp, erf to 1e-6. Tolerance against reference/: 1e-5
//            relative to the largest value (tests/kernels/gelu_test.cpp).
// Traffic:   2*T*F values forward, 3*T*F backward; geglu 3*T*F and 5*T*F. The
//            backward pass moves T*F more if it also writes the value.
// Source:    D. Hendrycks, K. Gimpel: Gaussian Error Linear Units, 2016;
//            N. Shazeer: GLU Variants Improve Transformer, 2020.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// The two functions. Each model names its own; they differ by 1e-3.
enum class gelu_form : std::uint8_t { exact, tanh };

/// Part of kernels::backend.
struct gelu_ops {
  /// Computes y_TF = gelu(x_TF); y_TF may be x_TF.
  virtual void gelu(matrix_view<float> y_TF, matrix_view<const float> x_TF,
                    gelu_form form) = 0;

  /// Computes the gradient of the input; dx_TF may be one of the inputs. If
  /// y_TF is not empty, writes gelu(x_TF) to it; y_TF may be dy_TF.
  virtual void
  gelu_backward(matrix_view<float> dx_TF, matrix_view<const float> dy_TF,
                matrix_view<const float> x_TF, gelu_form form,
                matrix_view<float> y_TF = {}) = 0;

  /// Computes y_TF = gelu(gate_TF) * up_TF; y_TF may be one of the inputs.
  virtual void geglu(matrix_view<float> y_TF, matrix_view<const float> gate_TF,
                     matrix_view<const float> up_TF, gelu_form form) = 0;

  /// Computes the gradients of both inputs. An output may share the memory of
  /// an input of the same shape, but dgate_TF must not be dup_TF. If y_TF is
  /// not empty, writes the result of geglu() to it; y_TF may be dy_TF.
  virtual void
  geglu_backward(matrix_view<float> dgate_TF, matrix_view<float> dup_TF,
                 matrix_view<const float> dy_TF,
                 matrix_view<const float> gate_TF,
                 matrix_view<const float> up_TF, gelu_form form,
                 matrix_view<float> y_TF = {}) = 0;

protected:
  ~gelu_ops() = default;
};

} // namespace shoal::kernels
