// runtime/model/decode/block_cached.hpp -- a model's parts, forward only, with a cache.
//
// The computations of block.hpp and stage_parts.hpp, for generation: from
// packed weights, and keeping only keys and values. Private to runtime/model;
// callers use paged_cache.hpp. Names as in block.hpp.
#pragma once

#include "runtime/model/block.hpp"
#include "runtime/model/decode/inference.hpp"

namespace shoal::model {

/// Computes the hidden states of tokens.
void embed(const block_context& c, const inference_unit& unit,
           kernels::vector_view<const kernels::token_id> ids_T,
           kernels::matrix_view<float> x_TD);
/// The final norm, in place; and it with the logits behind it.
void head_norm(const block_context& c, const inference_unit& unit,
               kernels::matrix_view<float> x_TD);
void head_logits(const block_context& c, const inference_unit& unit,
                 kernels::matrix_view<float> x_TD,
                 kernels::matrix_view<float> logits_TV);

/// A pass that computes the block on new rows of some sequences in place. The
/// cache holds their earlier positions; the pass appends the keys and values of
/// the rows. Context, unit, views and pages stay until it is destroyed.
std::unique_ptr<pass>
begin_block_cached(const block_context& c, const inference_unit& unit,
                   kernels::matrix_view<float> x_TD,
                   const kernels::kv_pages& cache,
                   std::span<const kernels::paged_rows> sequences);

} // namespace shoal::model
