// kernels/layers/attention.hpp -- causal attention with grouped key-value heads.
//
// Of whole sequences, for training; paged_attention.hpp has that with a cache.
//
//   s[i,j] = scale * q[i] . k[j]  for j <= i,   p = softmax_j(s)
//   o[i]   = sum_j p[i,j] * v[j],  lse[i] = log sum_j exp(s[i,j])
//
// Query head n uses key-value head n / (N / K). With a window W, i sees
// only j > i - W. With a soft cap c, s[i,j] is c * tanh(s[i,j] / c).
//
// Shapes:    B sequences of T tokens, N query heads, K key-value heads, H
//            values a head. q, o: B*T rows of N*H; k, v: B*T rows of K*H; row
//            b*T + t. lse: B*N rows of T, row b*N + n.
// Precision: sums in float. Tolerance against reference/: 1e-5 relative to
//            the largest value (tests/kernels/attention_test.cpp).
// Traffic:   scores are never stored; the backward pass computes them again
//            from lse. Scratch: one block of rows of scores per thread.
// Cost:      2*B*N*T*T*H operations forward, 5*B*N*T*T*H backward.
// Source:    T. Dao: FlashAttention-2, ICLR 2024, section 3.1 (the backward
//            pass from lse and rowsum(do * o)).
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// @pre heads is a multiple of kv_heads, none is 0
struct attention_shape {
  std::size_t batch = 1;     ///< B
  std::size_t tokens = 0;    ///< T
  std::size_t heads = 0;     ///< N
  std::size_t kv_heads = 0;  ///< K
  std::size_t head_size = 0; ///< H
  float scale = 0;           ///< usually 1 / sqrt(H)
  std::size_t window = 0;    ///< W; 0: all earlier tokens are seen
  float softcap = 0;         ///< c; 0: none

  /// The first key that a token sees if `keys` keys exist up to its own.
  std::size_t first_key(std::size_t keys) const {
    return window != 0 && keys > window ? keys - window : 0;
  }
};

/// Part of kernels::backend; outputs never overlap inputs.
struct attention_ops {
  /// Computes o_TNH; saves lse_NT for the backward pass unless it is empty.
  virtual void
  attention(matrix_view<float> o_TNH, matrix_view<float> lse_NT,
            matrix_view<const float> q_TNH, matrix_view<const float> k_TKH,
            matrix_view<const float> v_TKH, const attention_shape& shape) = 0;

  /// Computes (overwrites) dq, dk and dv from do, the inputs, and the outputs
  /// of the forward pass.
  virtual void attention_backward(
    matrix_view<float> dq_TNH, matrix_view<float> dk_TKH,
    matrix_view<float> dv_TKH, matrix_view<const float> do_TNH,
    matrix_view<const float> q_TNH, matrix_view<const float> k_TKH,
    matrix_view<const float> v_TKH, matrix_view<const float> o_TNH,
    matrix_view<const float> lse_NT, const attention_shape& shape) = 0;

protected:
  ~attention_ops() = default;
};

} // namespace shoal::kernels
