// actors/serving/row_results.hpp -- what comes of a row of a pass on the last stage:
// the tokens that are chosen, the probabilities and the hidden states that were
// asked for.
//
// Threads: the device's.
#pragma once

#include "actors/serving/ruled_text.hpp"
#include "runtime/core/serving/serve_messages.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace shoal::kernels {
class backend;
}

namespace shoal::actors {

using logits_view = std::span<const float>;

/// @param logits of its last tokens, as many as logits_of()
/// @param rule the text of the row's sequence; null: it may be any, or is not here yet
/// @returns `waits` if the row is ruled and its text is not ready
/// @pre with a rule there are no guesses
core::row_result
result_of(kernels::backend& device, const core::serve_row& r,
          logits_view logits, std::size_t vocabulary, ruled_text* rule);

/// The hidden states of a prompt's tokens so far, added one after the other, so
/// that the sum does not depend on how the prompt is cut into rows.
struct pooled_sum {
  std::vector<double> sum_D;
  std::size_t tokens = 0;
};

/// @param normed  of its last tokens, as many as pooled_of(), each of `width` values
/// @param sum     of its sequence; null: the last token's alone is wanted
/// @pre r.pooled
core::row_result
pooled_result_of(const core::serve_row& r, std::span<const float> normed,
                 std::size_t width, pooled_sum* sum);

} // namespace shoal::actors
