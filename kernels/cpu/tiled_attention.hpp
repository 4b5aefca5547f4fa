// kernels/cpu/tiled_attention.hpp -- attention of a prompt by tiles of bf16.
//
// Queries, keys, probabilities and values are each split into two bf16 values,
// and the three largest of the four products of halves are added. So tiles of
// bf16 give the same as floats, except for some 2^-17 of the largest terms, at
// a third of the tiles' speed, which is several times that of floats.
//
// Private to kernels/cpu.
#pragma once

#include "kernels/attention.hpp"
#include "kernels/cpu/isa/features.hpp"
#include "kernels/cpu/product/many_rows.hpp"

namespace shoal::kernels::cpu {

/// Whether tiled_attention() can take this call: the processor has tiles, and
/// there is at least one block of tokens.
bool can_tile_attention(const attention_shape& shape, features with);

/// attention_cached() of kernels/attention.hpp.
/// @pre can_tile_attention(shape, with)
void tiled_attention(thread_team& team, many_rows_scratch& scratch,
                     matrix_view<float> o_TNH, matrix_view<const float> q_TNH,
                     matrix_view<const float> k_PKH,
                     matrix_view<const float> v_PKH,
                     const attention_shape& shape, features with);

} // namespace shoal::kernels::cpu
