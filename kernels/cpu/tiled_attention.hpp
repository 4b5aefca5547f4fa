// kernels/cpu/tiled_attention.hpp -- attention of a prompt by tiles of bf16.
//
// Queries, keys, probabilities and values are each split in two bf16 values,
// and of the four products of halves the three largest are added: so tiles of
// bf16 give what floats give, but for some 2^-17 of the largest terms, at a
// third of their speed, which is several times that of floats.
//
// Private to kernels/cpu.
#pragma once

#include "kernels/attention.hpp"
#include "kernels/cpu/features.hpp"
#include "kernels/cpu/many_rows.hpp"

namespace shoal::kernels::cpu {

/// Whether tiled_attention() takes this: tiles, and a block of tokens at least.
bool can_tile_attention(const attention_shape& shape, features with);

/// attention_cached() of kernels/attention.hpp.
/// @pre can_tile_attention(shape, with)
void tiled_attention(thread_team& team, many_rows_scratch& scratch,
                     matrix_view<float> o_TNH, matrix_view<const float> q_TNH,
                     matrix_view<const float> k_PKH,
                     matrix_view<const float> v_PKH,
                     const attention_shape& shape, features with);

} // namespace shoal::kernels::cpu
