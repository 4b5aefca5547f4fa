// kernels/cpu/product/panels.hpp -- products of tokens with a weight of q8 or q4.
//
// Activations are rounded to 8 bits by blocks of 32, whatever the number of
// tokens. The dot product of two blocks is a sum of whole numbers, so exact in
// any order; the blocks of a sum are added in float, ascending:
//
//   sum = fma(dot, weight_scale * activation_scale, sum)
//
// So a token's results have the same bits by any of the functions below, and
// with any other tokens. Callers cut the work into ranges of panels and hand
// them to threads.
//
// Private to kernels/cpu.
#pragma once

#include "kernels/common/thread_team.hpp"
#include "kernels/cpu/product/memory.hpp"
#include "kernels/inference/packed_weight.hpp"

#include <vector>

namespace shoal::kernels::cpu {

/// Up to this number of tokens a product is bound by reading the weight.
inline constexpr std::size_t few_tokens = 8;

/// Panels that one token is multiplied by at the same time: the processor
/// prefetches from several pages better than from one.
inline constexpr std::size_t streams = 2;

/// Activations rounded to 8 bits by blocks: x = scale * code. In the order in
/// which a chunk of weights meets them: c is a chunk of 64 inputs.
struct quantised_rows {
  std::size_t rows = 0;           ///< T
  std::size_t chunks = 0;         ///< of a row
  std::vector<std::int8_t> codes; ///< [c][T][64], 0 past the end
  std::vector<float> scales;      ///< [c][T][2]
  /// -128 * sum of the codes of a block. The offset of the weights' codes adds
  /// the opposite to a dot product, so the sum begins with this.
  std::vector<std::int32_t> offsets; ///< [c][T][2]

  void resize(std::size_t row_count, std::size_t cols);
};

void quantise_row(quantised_rows& to, std::size_t t, const float* x_I,
                  std::size_t cols);

/// Outputs of panels [first, last) of y_TO, with every target's instructions.
/// Fast for few_tokens.
void panels_product(matrix_view<float> y_TO, const quantised_rows& x,
                    const packed_weight& w_OI, std::size_t first,
                    std::size_t last);
/// The same by vpdpbusd. @pre usable_features().vnni
void panels_product_vnni(matrix_view<float> y_TO, const quantised_rows& x,
                         const packed_weight& w_OI, std::size_t first,
                         std::size_t last);

/// Memory of panels_product_i16(), kept between calls.
struct i16_scratch {
  scratch_memory x;
  std::vector<scratch_memory> tasks; ///< of each worker
};

/// Whether this instruction set has the products of pairs of 16 bits that
/// panels_product_i16() uses.
bool has_i16_products();
/// All of y_TO, for many tokens. Rounds x_TI itself. @pre has_i16_products()
void panels_product_i16(thread_team& team, i16_scratch& scratch,
                        matrix_view<float> y_TO, matrix_view<const float> x_TI,
                        const packed_weight& w_OI);

} // namespace shoal::kernels::cpu
