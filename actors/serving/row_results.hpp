// actors/serving/row_results.hpp -- what comes of a row of a pass on the last stage:
// the tokens that are chosen, and the probabilities that were asked for.
//
// Threads: the device's.
#pragma once

#include "actors/serving/ruled_text.hpp"
#include "runtime/core/serving/serve_messages.hpp"

#include <span>

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

} // namespace shoal::actors
