// kernels/layers/rmsnorm.hpp -- root-mean-square normalization.
//
//   y[t,d]  = x[t,d] * r[t] * w[d],  r[t] = 1 / sqrt(mean_d(x[t,d]^2) + eps)
//   dx[t,d] = r[t] * (g[t,d] - x[t,d] * r[t]^2 * mean_d(g * x)),  g = dy * w
//   dw[d]  += sum_t dy[t,d] * x[t,d] * r[t]
//
// With an offset, w[d] stands for w[d] + offset: Gemma's weights are 0 where
// those of other models are 1.
//
// Shapes:    T tokens, D model width.
// Precision: sums in float. Tolerance against reference/: 1e-5 relative to
//            the largest value (tests/kernels/rmsnorm_test.cpp).
// Traffic:   2*T*D values forward, 3*T*D for B, 2*T*D for W.
// Source:    B. Zhang, R. Sennrich: Root Mean Square Layer Normalization,
//            NeurIPS 2019.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// Part of kernels::backend. @pre eps > 0
struct rmsnorm_ops {
  /// Computes y_TD, which may be x_TD. Saves r_T for the backward pass unless
  /// r_T is empty.
  virtual void
  rmsnorm(matrix_view<float> y_TD, vector_view<float> r_T,
          matrix_view<const float> x_TD, vector_view<const float> w_D,
          float eps, float offset = 0) = 0;

  /// Computes the gradient of the input, or adds it to dx_TD. If it overwrites,
  /// dx_TD may be dy_TD.
  virtual void
  rmsnorm_input_gradient(matrix_view<float> dx_TD,
                         matrix_view<const float> dy_TD,
                         matrix_view<const float> x_TD,
                         vector_view<const float> w_D,
                         vector_view<const float> r_T,
                         into mode = into::overwrite, float offset = 0) = 0;

  /// Adds the gradient of the weight to dw_D.
  virtual void rmsnorm_weight_gradient(vector_view<float> dw_D,
                                       matrix_view<const float> dy_TD,
                                       matrix_view<const float> x_TD,
                                       vector_view<const float> r_T) = 0;

protected:
  ~rmsnorm_ops() = default;
};

} // namespace shoal::kernels
