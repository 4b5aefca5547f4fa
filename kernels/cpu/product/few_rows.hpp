// kernels/cpu/product/few_rows.hpp -- products of a few tokens with a packed weight.
//
// Bound by reading the weight, which each of these does once, in order. Callers
// cut the work into ranges of outputs and hand them to threads. A range depends
// on the shape alone, and each output is one sum.
//
// Private to kernels/cpu.
#pragma once

#include "kernels/packed_weight.hpp"

namespace shoal::kernels::cpu {

/// The largest number of tokens: for rows of floats, rows of bf16, panels.
inline constexpr std::size_t few_f32 = 4;
inline constexpr std::size_t few_bf16 = 4;
inline constexpr std::size_t few_panels = 8;

/// Distance of the software prefetch: the processor's own prefetcher stops at
/// the end of a page. Some 120 ns at the 16 GB/s of one thread without AVX-512,
/// and at the 37 GB/s of one with it (two EPYC).
inline constexpr std::size_t prefetch_bytes = 2048;
inline constexpr std::size_t prefetch_bytes_wide = 4096;

/// Rows or panels that one token is multiplied by at the same time: the
/// processor prefetches from several pages better than from one.
inline constexpr std::size_t streams = 2;

/// Activations rounded to 8 bits by blocks: x = scale * code.
struct quantised_rows {
  std::size_t rows = 0;
  std::size_t padded = 0;         ///< inputs of a row, whole chunks
  std::vector<std::int8_t> codes; ///< [T][padded], 0 past the end
  std::vector<float> scales;      ///< [T][padded / 32]
  /// -128 * sum of the codes of a block. The offset of the weights' codes adds
  /// the opposite to a dot product, so the sum begins with this.
  std::vector<std::int32_t> offsets; ///< [T][padded / 32]

  void resize(std::size_t row_count, std::size_t cols);
};

/// Activations with even and odd inputs apart, as pairs of bf16 in a register.
struct paired_rows {
  std::size_t half = 0;    ///< (I + 1) / 2, values of a row of each
  std::vector<float> even; ///< [T][half]: inputs 0, 2, ..
  std::vector<float> odd;  ///< inputs 1, 3, ..; 0 past the end

  void resize(std::size_t row_count, std::size_t cols);
};

/// Activations rounded to bf16.
struct rounded_rows {
  std::size_t padded = 0;   ///< inputs of a row, whole lines of 32
  std::vector<bf16> values; ///< [T][padded], 0 past the end

  void resize(std::size_t row_count, std::size_t cols);
  /// Rounds row t. @pre usable_features().bf16
  void set(std::size_t t, const float* x_I, std::size_t cols);
};

void quantise_row(quantised_rows& to, std::size_t t, const float* x_I,
                  std::size_t cols);
void pair_row(paired_rows& to, std::size_t t, const float* x_I,
              std::size_t cols);

/// Outputs [first, last) of y_TO. @pre T <= few_f32
void rows_product_f32(matrix_view<float> y_TO, matrix_view<const float> x_TI,
                      matrix_view<const float> w_OI, std::size_t first,
                      std::size_t last);
/// In float, with the instructions of every target. @pre T <= few_bf16
void rows_product_bf16(matrix_view<float> y_TO, const paired_rows& x,
                       matrix_view<const bf16> w_OI, std::size_t first,
                       std::size_t last);
/// By vdpbf16ps. @pre T <= few_bf16; usable_features().bf16
void rows_product_dot(matrix_view<float> y_TO, const rounded_rows& x,
                      matrix_view<const bf16> w_OI, std::size_t first,
                      std::size_t last);
/// Outputs of panels [first, last) of y_TO, with every target's instructions.
/// @pre T <= few_panels
void panels_product(matrix_view<float> y_TO, const quantised_rows& x,
                    const packed_weight& w_OI, std::size_t first,
                    std::size_t last);
/// The same by vpdpbusd. @pre usable_features().vnni
void panels_product_vnni(matrix_view<float> y_TO, const quantised_rows& x,
                         const packed_weight& w_OI, std::size_t first,
                         std::size_t last);

} // namespace shoal::kernels::cpu
