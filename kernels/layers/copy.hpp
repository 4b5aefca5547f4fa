// kernels/layers/copy.hpp -- moves values, and sets them.
//
// Model code copies activations, gradients and state by these operations only:
// on a device with memory of its own a host pointer to them cannot be followed.
//
// Precision: exact.
// Traffic:   copy 2*T*D values, fill P.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// Part of kernels::backend.
struct copy_ops {
  /// Writes from_TD into to_TD. @pre they have one shape and do not overlap
  virtual void
  copy(matrix_view<float> to_TD, matrix_view<const float> from_TD) = 0;

  /// The same of contiguous values. Where one of the two is a host's memory,
  /// the values are there when the call returns.
  virtual void
  copy(vector_view<float> to_P, vector_view<const float> from_P) = 0;

  /// Sets all values.
  virtual void fill(vector_view<float> x_P, float value) = 0;

protected:
  ~copy_ops() = default;
};

} // namespace shoal::kernels
