// kernels/add.hpp -- the sum of two matrices (residual connections).
//
// Precision: cpu equals reference/ to the last bit.
// Traffic:   3*T*D values.
#pragma once

#include "kernels/tensor.hpp"

namespace shoal::kernels {

/// Part of kernels::backend.
struct add_ops {
  /// Computes y_TD = a_TD + b_TD; y_TD may be one of the inputs.
  virtual void add(matrix_view<float> y_TD, matrix_view<const float> a_TD,
                   matrix_view<const float> b_TD) = 0;

protected:
  ~add_ops() = default;
};

} // namespace shoal::kernels
