// kernels/rope.hpp -- rotary position embedding, rotate-half convention.
//
//   a = p[t] * theta^(-2i/H),  i in [0, H/2)
//   y[i]       = x[i] * cos(a) - x[i + H/2] * sin(a)
//   y[i + H/2] = x[i + H/2] * cos(a) + x[i] * sin(a)
//
// The gradient is the rotation by the opposite angle.
//
// Shapes:    T tokens, N heads of H values (H even), P positions in the table.
// Precision: the table is computed in float as transformers does, cos and sin
//            in double. cpu equals reference/ to the last bit.
// Traffic:   2*T*N*H values.
// Source:    J. Su et al.: RoFormer, Neurocomputing 568 (2024).
#pragma once

#include "kernels/tensor.hpp"

namespace shoal::kernels {

/// cos and sin of all angles for positions [0, P). Plain data; read-only use
/// from several threads is safe.
struct rope_table {
  std::size_t head_size = 0;  ///< H
  std::size_t positions = 0;  ///< P
  std::vector<float> cos_PH2; ///< P rows of H/2 values
  std::vector<float> sin_PH2;
};

/// @pre head_size is even and not 0, theta > 0
rope_table
make_rope_table(std::size_t head_size, std::size_t positions, double theta);

/// Part of kernels::backend.
struct rope_ops {
  /// Rotates each head of each row of x_TNH in place: row t belongs to
  /// position positions_T[t] < P. The number of heads is cols / H.
  virtual void
  rope(matrix_view<float> x_TNH, vector_view<const std::int32_t> positions_T,
       const rope_table& table) = 0;

  /// Turns the gradient of the output into that of the input, in place (the
  /// inverse rotation).
  virtual void rope_backward(matrix_view<float> dx_TNH,
                             vector_view<const std::int32_t> positions_T,
                             const rope_table& table) = 0;

protected:
  ~rope_ops() = default;
};

} // namespace shoal::kernels
