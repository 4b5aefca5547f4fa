// kernels/layers/scale.hpp -- functions of single values, in place.
//
//   scale:    x = x * factor
//   softcap:  x = cap * tanh(x / cap)
//
// The gradient of scale is scale. The gradient of softcap is part of the
// operation that follows it (cross_entropy.hpp, attention.hpp).
//
// Precision: scale on cpu equals reference/ to the last bit; softcap to 1e-5
//            relative to the largest value (tests/kernels/scale_test.cpp).
// Traffic:   2*T*D values.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// Part of kernels::backend.
struct scale_ops {
  /// Multiplies all values by `factor`.
  virtual void scale(matrix_view<float> x_TD, float factor) = 0;

  /// Maps all values into (-cap, cap). @pre cap > 0
  virtual void softcap(matrix_view<float> x_TD, float cap) = 0;

protected:
  ~scale_ops() = default;
};

} // namespace shoal::kernels
