// kernels/cpu/inference/sampling.cpp -- the choice of a token, as in reference/.
//
// One row of logits per token, in double: small compared with the product that
// made the logits, and the bits are part of the definition. The likeliest tokens
// are found in one pass instead of by sorting.
#include "kernels/reference/inference/sampling.hpp"

#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/reference/backend.hpp"

#include <algorithm>
#include <array>

namespace shoal::kernels::cpu {

sampled_token cpu_backend::sample(vector_view<const float> logits_V,
                                  const sampling_options& options,
                                  sampling_generator& generator) {
  return reference::reference_backend{}.sample(logits_V, options, generator);
}

float cpu_backend::logprobs(vector_view<const float> logits_V, token_id of,
                            std::span<sampled_token> likely) {
  SHOAL_KERNEL_ASSERT(likely.size() <= likely_tokens_max
                      && likely.size() <= logits_V.size
                      && static_cast<std::size_t>(of) < logits_V.size);
  // By falling logit; a token goes behind equal ones, which have lower ids.
  std::array<std::size_t, likely_tokens_max + 1> ids{};
  std::size_t count = 0;
  for (std::size_t v = 0; v != logits_V.size && !likely.empty(); ++v) {
    if (count == likely.size() && !(logits_V[v] > logits_V[ids[count - 1]]))
      continue;
    std::size_t at = count;
    for (; at > 0 && logits_V[v] > logits_V[ids[at - 1]]; --at)
      ids[at] = ids[at - 1];
    ids[at] = v;
    count = std::min(count + 1, likely.size());
  }
  const reference::log_softmax to(logits_V);
  for (std::size_t i = 0; i != likely.size(); ++i) {
    const auto id = static_cast<token_id>(ids[i]);
    likely[i] = {id, to.of(id)};
  }
  return to.of(of);
}

} // namespace shoal::kernels::cpu
