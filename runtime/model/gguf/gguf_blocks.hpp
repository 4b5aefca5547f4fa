// runtime/model/gguf/gguf_blocks.hpp -- blocks of quantised values as floats.
//
//   Q8_0: y = d q                     32 values, q of 8 bits
//   Q4_0: y = d (q - 8)               32 values, q of 4 bits
//   Q4_K, Q5_K: y = d s q - m t       256 values in 8 groups, each with s and t
//   Q6_K: y = d s (q - 32)            256 values in 16 groups, each with s
//
// d and m are F16.
//
// Precision: as ggml's own functions, to the last bit: the same operations on
//            floats, in their order.
// Source:    ggml-quants.c of ggml, dequantize_row_*
#pragma once

#include "runtime/model/gguf/gguf_file.hpp"

#include <span>

namespace shoal::model::gguf {

/// Converts whole blocks.
/// @pre into.size() is a multiple of the type's block, and `from` has its bytes
void to_floats(block_type type, std::span<const std::byte> from,
               std::span<float> into);

} // namespace shoal::model::gguf
