// kernels/layers/swiglu.hpp -- the gate of a Llama MLP.
//
//   y = silu(g) * u,  silu(g) = g / (1 + exp(-g))
//
// Shapes:    T tokens, F values of the hidden layer.
// Precision: exp to a few ulp. Tolerance against reference/: 1e-5 relative to
//            the largest value (tests/kernels/swiglu_test.cpp).
// Traffic:   3*T*F values forward, 5*T*F backward; T*F more if the backward
//            pass also writes the value.
// Source:    N. Shazeer: GLU Variants Improve Transformer, 2020.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// Part of kernels::backend.
struct swiglu_ops {
  /// Computes y_TF = silu(gate_TF) * up_TF; y_TF may be one of the inputs.
  virtual void swiglu(matrix_view<float> y_TF, matrix_view<const float> gate_TF,
                      matrix_view<const float> up_TF) = 0;
  /// Computes the gradients of both inputs. An output may share the memory of
  /// an input of the same shape, but dgate_TF must not be dup_TF. If y_TF is
  /// not empty, writes the result of swiglu() to it; y_TF may be dy_TF.
  /// it gets what swiglu() gave; it may be dy_TF.
  virtual void
  swiglu_backward(matrix_view<float> dgate_TF, matrix_view<float> dup_TF,
                  matrix_view<const float> dy_TF,
                  matrix_view<const float> gate_TF,
                  matrix_view<const float> up_TF,
                  matrix_view<float> y_TF = {}) = 0;

protected:
  ~swiglu_ops() = default;
};

} // namespace shoal::kernels
