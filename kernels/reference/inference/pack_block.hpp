// kernels/reference/inference/pack_block.hpp -- a block of 32 weights in q8 or q4.
//
// The specification of the bits: one value at a time, by operations that round
// the same way on every machine. Private to kernels/reference.
#pragma once

#include "kernels/inference/packed_layout.hpp"

namespace shoal::kernels::reference {

/// A block of one output: w = scale * code.
struct packed_block {
  bf16 scale;                     ///< NaN if a value is not finite
  std::uint8_t codes[block_cols]; ///< codes as they are stored, or levels of q4
};

packed_block pack_block_q8(const float* w);
packed_block pack_block_q4(const float* w);

} // namespace shoal::kernels::reference
