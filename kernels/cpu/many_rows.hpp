// kernels/cpu/many_rows.hpp -- products of many tokens with a packed weight.
//
// The weight is brought, a part at a time, into the form that the product
// takes: bf16 for the dot products and tiles of bf16 (AVX-512 BF16, AMX); else
// q8 and q4 whole numbers of 16 bits where registers hold pairs of them, or
// floats for sgemm. That costs little against the product of many tokens.
// Weights of bf16 without such instructions: product.hpp.
//
//   y_TO = x_TI * w_OI^T, cut into parts of outputs; each part is one task
//
// Private to kernels/cpu.
#pragma once

#include "kernels/cpu/features.hpp"
#include "kernels/packed_weight.hpp"
#include "kernels/thread_team.hpp"

namespace shoal::kernels::cpu {

/// Memory on a boundary of cache lines, in large pages where they are to be
/// had: pages of 4 KiB lie in the second-level cache as chance has it, and
/// push each other out before it is full.
class scratch_memory {
public:
  /// At least `bytes`; what it held is lost if it grows.
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

/// Whether this instruction set multiplies pairs of 16 bits as the next takes.
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
