// kernels/reference/training/cross_entropy.cpp -- loss and gradient of floats.
#include "kernels/reference/training/cross_entropy.hpp"

#include "kernels/common/check.hpp"
#include "kernels/reference/backend.hpp"

namespace shoal::kernels::reference {

void reference_backend::cross_entropy(vector_view<float> loss_T,
                                      matrix_view<float> dlogits_TV,
                                      matrix_view<const float> logits_TV,
                                      vector_view<const token_id> targets_T,
                                      float scale, float softcap) {
  SHOAL_KERNEL_ASSERT(
    loss_T.size == logits_TV.rows && targets_T.size == logits_TV.rows
    && (dlogits_TV.empty() || same_shape(dlogits_TV, logits_TV)));
  for (std::size_t t = 0; t != targets_T.size; ++t)
    SHOAL_KERNEL_ASSERT(
      targets_T[t] == -1
      || (targets_T[t] >= 0
          && static_cast<std::size_t>(targets_T[t]) < logits_TV.cols));
  loops::cross_entropy<float>(loss_T, dlogits_TV, logits_TV, targets_T, scale,
                              softcap);
}

} // namespace shoal::kernels::reference
