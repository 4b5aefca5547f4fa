// kernels/layers/add.hpp -- sums of two arrays (residual connections, gradients of
// weights that two layers share).
//
// Precision: cpu equals reference/ to the last bit.
// Traffic:   add 3*T*D values, add_both 4*P.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// Part of kernels::backend.
struct add_ops {
  /// Computes y_TD = a_TD + b_TD; y_TD may be one of the inputs.
  virtual void add(matrix_view<float> y_TD, matrix_view<const float> a_TD,
                   matrix_view<const float> b_TD) = 0;

  /// Writes a_P + b_P to both. @pre they do not overlap
  virtual void add_both(vector_view<float> a_P, vector_view<float> b_P) = 0;

protected:
  ~add_ops() = default;
};

} // namespace shoal::kernels
