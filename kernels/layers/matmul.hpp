// kernels/layers/matmul.hpp -- products of activations with a weight matrix.
//
//   y[t,o]   = sum_i x[t,i] * w[o,i] + b[o]
//   dx[t,i]  = sum_o dy[t,o] * w[o,i]            (B)
//   dw[o,i] += sum_t dy[t,o] * x[t,i]            (W)
//   db[o]   += sum_t dy[t,o]                     (W)
//
// Shapes:    T tokens, I inputs, O outputs. The weight has the order of Hugging
//            Face files: one row per output, or, for GPT-2, one row per input
//            (weight_order).
// Precision: sums in float, in an order that depends on the shapes and
//            strides alone. Tolerance against reference/: 1e-5 of
//            sum |x| * |w| (tests/kernels/matmul_test.cpp). Factors may be
//            rounded to bf16 before the product (factor_type).
// Cost:      2*T*I*O operations each.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// The order of a weight in memory; views named w_OI have I rows if in_out.
enum class weight_order : std::uint8_t {
  out_in, ///< a row of inputs for each output
  in_out  ///< a row of outputs for each input
};

/// The type that both factors of a product are rounded to. A processor without
/// bf16 products does not round: more exact, and slower.
enum class factor_type : std::uint8_t { f32, bf16 };

/// Part of kernels::backend; any shape, outputs never overlap inputs.
struct matmul_ops {
  /// Computes y_TO = x_TI * w_OI^T, plus bias_O if it is not empty.
  virtual void
  matmul(matrix_view<float> y_TO, matrix_view<const float> x_TI,
         matrix_view<const float> w_OI, vector_view<const float> bias_O = {},
         weight_order order = weight_order::out_in,
         factor_type factors = factor_type::f32) = 0;

  /// Computes dx_TI = dy_TO * w_OI, or adds it to dx_TI.
  virtual void
  matmul_input_gradient(matrix_view<float> dx_TI,
                        matrix_view<const float> dy_TO,
                        matrix_view<const float> w_OI,
                        into mode = into::overwrite,
                        weight_order order = weight_order::out_in,
                        factor_type factors = factor_type::f32) = 0;

  /// Adds dy_TO^T * x_TI to dw_OI, so that microbatches accumulate.
  virtual void
  matmul_weight_gradient(matrix_view<float> dw_OI,
                         matrix_view<const float> dy_TO,
                         matrix_view<const float> x_TI,
                         weight_order order = weight_order::out_in,
                         factor_type factors = factor_type::f32) = 0;

  /// Adds the sum of the rows of dy_TO to db_O.
  virtual void
  bias_gradient(vector_view<float> db_O, matrix_view<const float> dy_TO) = 0;

protected:
  ~matmul_ops() = default;
};

} // namespace shoal::kernels
