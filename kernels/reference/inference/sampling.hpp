// kernels/reference/inference/sampling.hpp -- log probabilities, for all backends.
//
// In double, and added up in the order of the ids: the bits are part of the
// definition (kernels/inference/sampling.hpp).
#pragma once

#include "kernels/inference/sampling.hpp"

namespace shoal::kernels::reference {

/// Turns the logits of one row into log probabilities.
class log_softmax {
public:
  /// @pre V >= 1
  explicit log_softmax(vector_view<const float> logits_V);
  float of(token_id id) const;

private:
  vector_view<const float> logits_V_;
  double largest_ = 0;
  double log_sum_ = 0; ///< of exp(logit - largest)
};

} // namespace shoal::kernels::reference
