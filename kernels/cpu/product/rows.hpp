// kernels/cpu/product/rows.hpp -- products of tokens with rows of f32 or bf16.
//
//   y[t,o] = sum_i x[t,i] * w[o,i]
//
// A register runs over inputs: it holds a part of the sum for each of its
// lanes, and the lanes are added at the end. So rows are read as they lie in
// memory, by one token as fast as memory allows, and a tile of tokens and
// outputs in registers multiplies many tokens at nearly the processor's peak.
// A sum has one order for any number of tokens: steps of a register's inputs,
// ascending, then the lanes by the same tree.
//
//   float  Highway, any processor: fused multiply-add. Rows of bf16 are widened:
//          a step has the even inputs of two registers, the next the odd ones
//   dot    vdpbf16ps: rows of bf16, activations rounded to bf16
//
// Few tokens read the rows where they are: up to a tile of them one row after
// the other; more, by `tiled_in_place`, four rows at a time, which their tiles
// pass one after the other while the next four come from memory. For many, a
// task copies its rows to panels of four outputs, in the order of the steps,
// that all tokens pass.
//
// Threads:   the team's; a task is a range of outputs.
// Private to kernels/cpu.
#pragma once

#include "kernels/common/thread_team.hpp"
#include "kernels/cpu/isa/features.hpp"
#include "kernels/cpu/product/memory.hpp"
#include "kernels/inference/packed_weight.hpp"

namespace shoal::kernels::cpu {

/// Outputs of a panel: the lanes of four sums are added at the same time.
inline constexpr std::size_t panel_outputs = 4;
/// The largest number of tokens of a tile.
inline constexpr std::size_t tile_tokens_max = 6;
/// The most tokens whose tiles read rows in place.
inline constexpr std::size_t tiled_tokens_max = 36;

/// Activations as an engine reads them: rows with zeros after the last input.
struct row_activations {
  const std::byte* data;
  std::size_t stride; ///< bytes from one row to the next
  std::size_t tokens;
};

/// Panels of consecutive outputs.
struct row_panels {
  const std::byte* data;
  std::size_t bytes; ///< of a panel
  std::size_t steps; ///< of a sum
};

/// How rows are prepared and multiplied.
struct row_engine {
  std::size_t tile_tokens; ///< of a tile in registers, at most tile_tokens_max
  std::size_t step_inputs; ///< inputs of one step, on average
  std::size_t x_bytes;     ///< of a step of one token
  std::size_t steps_together; ///< the steps of a sum are a multiple
  std::size_t sum_bytes;      ///< of the sums of a panel's tile
  void (*pack_x)(const float* x_I, std::size_t cols, std::size_t steps,
                 std::byte* to);
  /// Outputs [first, last) of y_TO. @pre tokens <= tile_tokens_max; first is a
  /// multiple of panel_outputs
  void (*in_place)(matrix_view<float> y_TO, const row_activations& x,
                   const packed_weight& w_OI, std::size_t first,
                   std::size_t last);
  /// The same for up to tiled_tokens_max tokens. Null: this engine has no such way.
  void (*tiled_in_place)(matrix_view<float> y_TO, const row_activations& x,
                         const packed_weight& w_OI, std::size_t first,
                         std::size_t last);
  /// The panel of outputs from `first` on.
  void (*pack_panel)(const packed_weight& w_OI, std::size_t first,
                     std::size_t steps, std::byte* to);
  /// All columns of y_TO, which are those of the panels. `sums` has sum_bytes
  /// for each panel. @pre tokens <= tile_tokens
  void (*multiply)(matrix_view<float> y_TO, const row_activations& x,
                   const row_panels& w, std::byte* sums);
};

/// @pre type is f32 or bf16
row_engine float_engine(weight_type type);
/// @pre usable_features().bf16
row_engine dot_engine();

/// Kept between products.
struct rows_scratch {
  scratch_memory x;
  std::vector<scratch_memory> tasks; ///< of each worker
};

/// y_TO = x_TI * w_OI^T. @pre w_OI is of f32 or bf16
void rows_product(thread_team& team, rows_scratch& scratch,
                  const row_engine& engine, matrix_view<float> y_TO,
                  matrix_view<const float> x_TI, const packed_weight& w_OI);

} // namespace shoal::kernels::cpu
