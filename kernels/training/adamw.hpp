// kernels/training/adamw.hpp -- Adam with decoupled weight decay.
//
// With g' = g * gradient_scale, in this order, each step rounded once:
//
//   w = w * (1 - lr * weight_decay)
//   m = m + (g' - m) * (1 - beta1)
//   v = v * beta2 + ((1 - beta2) * g') * g'
//   w = w + (-lr / (1 - beta1^step) * m)
//           / (sqrt(v) / sqrt(1 - beta2^step) + eps)
//
// which is the order of PyTorch's single-tensor AdamW. Factors that do not
// depend on the element are computed in double and rounded to float once.
//
// Precision: correctly rounded float operations, no contraction: every
//            backend gives the same bits.
// Traffic:   4 values read and 3 written per parameter; bound by memory.
// Source:    I. Loshchilov, F. Hutter: Decoupled Weight Decay Regularization,
//            ICLR 2019.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// The settings of one step, equal for all values of a tensor.
struct adamw_options {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  std::uint64_t step = 1;      ///< the number of this step, counted from 1
  float gradient_scale = 1.0f; ///< clipping: min(1, max_norm / norm)
};

/// The factors of the formula above, as every backend uses them.
struct adamw_factors {
  float decay;        ///< 1 - lr * weight_decay
  float one_minus_b1; ///< 1 - beta1
  float b2;           ///< beta2
  float one_minus_b2; ///< 1 - beta2
  float minus_step;   ///< -lr / (1 - beta1^step)
  float bias2_sqrt;   ///< sqrt(1 - beta2^step)
  float epsilon;
  float gradient_scale;
};
adamw_factors make_adamw_factors(const adamw_options& options);

/// Part of kernels::backend.
struct adamw_ops {
  /// Applies one step to the parameters w_P and their state m_P, v_P.
  /// @pre all have one size, options.step >= 1
  virtual void
  adamw(vector_view<float> w_P, vector_view<float> m_P, vector_view<float> v_P,
        vector_view<const float> g_P, const adamw_options& options) = 0;

protected:
  ~adamw_ops() = default;
};

} // namespace shoal::kernels
