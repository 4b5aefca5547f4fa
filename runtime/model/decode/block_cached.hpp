// runtime/model/decode/block_cached.hpp -- a model's parts, forward only, with a cache.
//
// The computations of block.hpp and stage_parts.hpp, for generation: from
// packed weights, and keeping only keys and values. Private to runtime/model;
// callers use decoder.hpp. Names as in block.hpp.
#pragma once

#include "runtime/model/block.hpp"
#include "runtime/model/decode/inference.hpp"

namespace shoal::model {

/// Computes the hidden states of tokens, and the logits of rows of hidden
/// states, which are overwritten.
void embed(const block_context& c, const inference_unit& unit,
           kernels::vector_view<const kernels::token_id> ids_T,
           kernels::matrix_view<float> x_TD);
void head_logits(const block_context& c, const inference_unit& unit,
                 kernels::matrix_view<float> x_TD,
                 kernels::matrix_view<float> logits_TV);

/// A pass that computes the block on the newest tokens of one sequence in
/// place. The cache already holds `past` positions; the pass appends its keys
/// and values. Context, unit and views stay until it is destroyed.
std::unique_ptr<pass>
begin_block_cached(const block_context& c, const inference_unit& unit,
                   kernels::matrix_view<float> x_TD,
                   kernels::matrix_view<float> keys_PKH,
                   kernels::matrix_view<float> values_PKH, std::size_t past);

} // namespace shoal::model
