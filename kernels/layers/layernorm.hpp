// kernels/layers/layernorm.hpp -- normalization to mean 0 and variance 1.
//
//   xh[t,d] = (x[t,d] - m[t]) * r[t],  m[t] = mean_d(x[t,d]),
//             r[t] = 1 / sqrt(mean_d((x[t,d] - m[t])^2) + eps)
//   y[t,d]  = xh[t,d] * w[d] + b[d]
//   dx[t,d] = r[t] * (g[t,d] - mean_d(g) - xh[t,d] * mean_d(g * xh)), g = dy * w
//   dw[d]  += sum_t dy[t,d] * xh[t,d]
//   db[d]  += sum_t dy[t,d]
//
// Shapes:    T tokens, D model width. stats_2T keeps m in row 0, r in row 1.
// Precision: sums in float, the variance from differences to the mean.
//            Tolerance against reference/: 1e-5 relative to the largest value
//            (tests/kernels/layernorm_test.cpp).
// Traffic:   2*T*D values forward, 3*T*D for B, 2*T*D for W.
// Source:    J. Ba, J. Kiros, G. Hinton: Layer Normalization, 2016.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// Part of kernels::backend. @pre eps > 0
struct layernorm_ops {
  /// Computes y_TD, which may be x_TD. Saves stats_2T for the backward pass
  /// unless it is empty.
  virtual void
  layernorm(matrix_view<float> y_TD, matrix_view<float> stats_2T,
            matrix_view<const float> x_TD, vector_view<const float> w_D,
            vector_view<const float> b_D, float eps) = 0;

  /// Computes the gradient of the input, or adds it to dx_TD. If it overwrites,
  /// dx_TD may be dy_TD.
  virtual void layernorm_input_gradient(matrix_view<float> dx_TD,
                                        matrix_view<const float> dy_TD,
                                        matrix_view<const float> x_TD,
                                        vector_view<const float> w_D,
                                        matrix_view<const float> stats_2T,
                                        into mode = into::overwrite) = 0;

  /// Adds the gradients of the weight and of the bias.
  virtual void
  layernorm_weight_gradient(vector_view<float> dw_D, vector_view<float> db_D,
                            matrix_view<const float> dy_TD,
                            matrix_view<const float> x_TD,
                            matrix_view<const float> stats_2T) = 0;

protected:
  ~layernorm_ops() = default;
};

} // namespace shoal::kernels
