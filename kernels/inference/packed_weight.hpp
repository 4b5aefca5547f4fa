// kernels/inference/packed_weight.hpp -- weight matrices as inference reads them.
//
//   y[t,o] = sum_i x[t,i] * w[o,i],   w[o,i] = scale[o,i/32] * code[o,i]
//
// f32 and bf16 are row-major and may be a view of a mapped file. q8 and q4 are
// made from floats when a model is loaded. A block is 32 consecutive inputs of
// one output and has one scale in bf16. A code is a whole number in [-127, 127]
// (q8), or one of the 16 numbers of q4_codes (q4), which were chosen for
// normally distributed values.
//
//   type   bits per weight         read by
//   f32    32                      fused multiply-add
//   bf16   16                      bf16 dot products; fused multiply-add
//   q8     8.5                     int8 dot products, or 16 bits
//   q4     4.5                     the same
//
// Shapes:    T tokens, I inputs, O outputs; any. q8 and q4 lie in panels of 16
//            outputs, each in chunks of 64 inputs (packed_layout.hpp), so O is
//            rounded up to 16 and I to 64 in memory.
// Precision: sums in float. A row of y has the same bits whatever other rows are
//            in the call, and with any number of threads (R-1 of README.md): the
//            type of the weight alone decides how it is computed on a machine.
//            Activations may be rounded first: to bf16 (bf16 weights, if the
//            processor multiplies bf16), or to 8 bits and a scale for each block
//            of 32 (q8, q4). Tolerances against reference/, which rounds nothing,
//            are in tests/kernels/packed_weight_test.cpp.
// Traffic:   few tokens: the bytes of the weight once; the rest is negligible.
//            Many tokens: bound by multiplication.
// Ownership: a packed_weight shares the memory that it reads; copies are cheap.
// Errors:    none. A block with a value that is not finite becomes NaN; a block
//            whose values are all below 1e-30 becomes 0.
#pragma once

#include "kernels/common/tensor.hpp"

#include <functional>
#include <memory>

namespace shoal::kernels {

/// The upper half of a float.
struct bf16 {
  std::uint16_t bits = 0;
};
static_assert(sizeof(bf16) == 2);

float to_float(bf16 x) noexcept;
/// Rounds to nearest, ties to even; NaN stays NaN.
bf16 to_bf16(float x) noexcept;

enum class weight_type : std::uint8_t { f32, bf16, q8, q4 };

/// "f32", "bf16", "q8", "q4".
const char* name_of(weight_type type) noexcept;

/// A weight [O, I]. Immutable.
class packed_weight {
public:
  packed_weight() = default;
  /// Views of rows without gaps. `owner` (may be null) keeps the memory alive.
  packed_weight(matrix_view<const float> w_OI,
                std::shared_ptr<const void> owner);
  packed_weight(matrix_view<const bf16> w_OI,
                std::shared_ptr<const void> owner);
  /// Panels that backend::pack_weight() has filled.
  /// @pre type is q8 or q4; `data` holds panel_bytes(type, rows, cols)
  packed_weight(weight_type type, std::size_t rows, std::size_t cols,
                std::shared_ptr<const std::byte> data);

  weight_type type() const noexcept { return type_; }
  std::size_t rows() const noexcept { return rows_; }
  std::size_t cols() const noexcept { return cols_; }
  bool empty() const noexcept { return rows_ == 0 || cols_ == 0; }
  /// Bytes that a product with one token reads.
  std::size_t bytes() const noexcept;
  const std::byte* data() const noexcept { return data_; }
  /// @pre type() is f32
  matrix_view<const float> floats() const noexcept;
  /// @pre type() is bf16
  matrix_view<const bf16> halves() const noexcept;

  /// Writes row `row` as floats. @pre into.size() == cols()
  void unpack_row(std::size_t row, std::span<float> into) const noexcept;

private:
  weight_type type_ = weight_type::f32;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
  const std::byte* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

/// Writes one row of the matrix to be packed. Called from several threads, for
/// different rows.
using row_reader = std::function<void(std::size_t row, float* into)>;

/// Part of kernels::backend; outputs never overlap inputs.
struct packed_weight_ops {
  /// Makes a weight of `rows` x `cols` from its rows; f32 and bf16 become
  /// copies. The same bits on every backend.
  virtual packed_weight
  pack_weight(weight_type type, std::size_t rows, std::size_t cols,
              const row_reader& read) = 0;

  /// Computes y_TO = x_TI * w_OI^T.
  virtual void
  packed_matmul(matrix_view<float> y_TO, matrix_view<const float> x_TI,
                const packed_weight& w_OI) = 0;

protected:
  ~packed_weight_ops() = default;
};

/// Writes row ids_T[t] of w_VD to row t of y_TD. @pre ids are below V
void packed_embedding(matrix_view<float> y_TD, const packed_weight& w_VD,
                      vector_view<const token_id> ids_T);

} // namespace shoal::kernels
