// kernels/layers/rope.hpp -- rotary position embedding, rotate-half convention.
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
// Source:    J. Su et al.: RoFormer, Neurocomputing 568 (2024); scaling:
//            transformers/modeling_rope_utils.py; B. Peng et al.: YaRN,
//            ICLR 2024.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// cos and sin of all angles for positions [0, P). Plain data; read-only use
/// from several threads is safe.
struct rope_table {
  std::size_t head_size = 0;  ///< H
  std::size_t positions = 0;  ///< P
  std::vector<float> cos_PH2; ///< P rows of H/2 values
  std::vector<float> sin_PH2;
};

/// The rule that turns frequencies f = theta^(-2i/H) into those of a model that
/// was first trained on shorter texts; the fields are transformers' keys.
struct rope_scaling {
  enum class rule : std::uint8_t {
    none,
    linear,  ///< f / factor
    dynamic, ///< f, up to the model's number of positions; more are not allowed
    llama3,  ///< f / factor for waves longer than original / low_freq_factor,
             ///< f for waves shorter than original / high_freq_factor, and a
             ///< mixture between the two
    yarn     ///< a mixture by the number of turns within original: f for more
             ///< turns than beta_fast, f / factor for fewer than beta_slow;
             ///< cos and sin are multiplied by attention_factor
  };
  rule type = rule::none;
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  double original = 8192; ///< original_max_position_embeddings
  double beta_fast = 32;
  double beta_slow = 1;
  double attention_factor = 1;

  bool operator==(const rope_scaling&) const = default;
};

/// @pre head_size is even and not 0, theta > 0, factor >= 1,
///      high_freq_factor > low_freq_factor > 0, original >= 1
rope_table make_rope_table(std::size_t head_size, std::size_t positions,
                           double theta, const rope_scaling& scaling = {});

/// Part of kernels::backend.
struct rope_ops {
  /// Rotates each head of each row of x_TNH in place: row t belongs to
  /// position positions_T[t] < P. The number of heads is cols / H.
  virtual void
  rope(matrix_view<float> x_TNH, vector_view<const std::int32_t> positions_T,
       const rope_table& table) = 0;

  /// Turns the gradient of the output into the gradient of the input, in place
  /// (the inverse rotation).
  virtual void rope_backward(matrix_view<float> dx_TNH,
                             vector_view<const std::int32_t> positions_T,
                             const rope_table& table) = 0;

protected:
  ~rope_ops() = default;
};

} // namespace shoal::kernels
