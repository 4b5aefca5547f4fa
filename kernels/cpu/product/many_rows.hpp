// kernels/cpu/product/many_rows.hpp -- products of many tokens with a packed weight.
//
// Each part of the weight is first converted to the form that the product
// takes: bf16 for the dot products and tiles of bf16 (AVX-512 BF16, AMX).
// Otherwise q8 and q4 become whole numbers of 16 bits, if registers hold pairs
// of them, or floats for sgemm. That costs little compared with a product of
// many tokens. For bf16 weights without such instructions: product.hpp.
//
//   y_TO = x_TI * w_OI^T, cut into parts of outputs; each part is one task
//
// Private to kernels/cpu.
#pragma once

#include "kernels/cpu/isa/features.hpp"
#include "kernels/packed_weight.hpp"
#include "kernels/thread_team.hpp"

namespace shoal::kernels::cpu {

/// Memory on a cache-line boundary, in large pages if there are any. Pages of
/// 4 KiB have random places in the second-level cache, and evict each other
/// before it is full.
class scratch_memory {
public:
  /// At least `bytes`; the contents are lost if it grows.
  std::byte* need(std::size_t bytes);

private:
  std::shared_ptr<std::byte> memory_;
  std::size_t size_ = 0;
};

/// Memory of the products of many tokens, kept between calls.
struct many_rows_scratch {
  scratch_memory x;                  ///< activations, rounded
  std::vector<scratch_memory> tasks; ///< of each worker
};

/// Floats and sgemm: any processor. @pre a weight of q8 or q4
void many_rows_f32(thread_team& team, many_rows_scratch& scratch,
                   matrix_view<float> y_TO, matrix_view<const float> x_TI,
                   const packed_weight& w_OI);

/// Whether this instruction set has the products of pairs of 16 bits that
/// many_rows_i16() uses.
bool has_i16_products();
/// Whole numbers of 16 bits. @pre has_i16_products(); a weight of q8 or q4
void many_rows_i16(thread_team& team, many_rows_scratch& scratch,
                   matrix_view<float> y_TO, matrix_view<const float> x_TI,
                   const packed_weight& w_OI);

/// @pre with.bf16; any weight but f32
void many_rows_bf16(thread_team& team, many_rows_scratch& scratch,
                    matrix_view<float> y_TO, matrix_view<const float> x_TI,
                    const packed_weight& w_OI, features with);

} // namespace shoal::kernels::cpu
