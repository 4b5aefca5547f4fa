// kernels/training/cross_entropy.hpp -- softmax and negative log likelihood in one.
//
//   loss[t]      = log sum_v exp(x[t,v]) - x[t,target[t]]       (nats)
//   dlogits[t,v] = scale * (softmax(x[t])[v] - [v == target[t]])
//
// With a soft cap c, x = c * tanh(logits / c), and dlogits is multiplied by
// 1 - (x / c)^2; without a soft cap, x is the logits.
//
// Shapes:    T tokens, V words in the vocabulary.
// Precision: sums in float, exp to a few ulp. Tolerance against reference/:
//            1e-5 (tests/kernels/cross_entropy_test.cpp).
// Traffic:   2*T*V values read, T*V written.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// Part of kernels::backend.
struct cross_entropy_ops {
  /// Computes the loss of each row and, unless dlogits_TV is empty, the
  /// gradient of scale * sum(loss). dlogits_TV may be logits_TV. A row whose
  /// target is -1 is ignored: its loss and gradient are 0.
  /// @pre -1 <= target < V
  virtual void
  cross_entropy(vector_view<float> loss_T, matrix_view<float> dlogits_TV,
                matrix_view<const float> logits_TV,
                vector_view<const token_id> targets_T, float scale,
                float softcap = 0) = 0;

protected:
  ~cross_entropy_ops() = default;
};

} // namespace shoal::kernels
