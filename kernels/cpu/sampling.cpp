// kernels/cpu/sampling.cpp -- the choice of a token, as in reference/.
//
// One row of logits per token, in double: small compared with the product that
// made the logits, and the bits are part of the definition.
#include "kernels/cpu/backend.hpp"
#include "kernels/reference/backend.hpp"

namespace shoal::kernels::cpu {

sampled_token cpu_backend::sample(vector_view<const float> logits_V,
                                  const sampling_options& options,
                                  sampling_generator& generator) {
  return reference::reference_backend{}.sample(logits_V, options, generator);
}

} // namespace shoal::kernels::cpu
