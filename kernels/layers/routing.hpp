// kernels/layers/routing.hpp -- tokens to experts and back.
//
//   p[t,:]  = softmax(logits[t,:])
//   top(t)  = the k experts of the largest p[t,:], by falling p (among equals,
//             the lower expert first)
//   w[t,e]  = p[t,e], or p[t,e] / sum over top(t), for e in top(t)
//   y[t]    = sum over e in top(t) of w[t,e] * expert_e(x[t])
//   balance = E * sum_e (count[e] / T) * mean_t p[t,e]
//
// The balance is that of one block over one microbatch. A model's loss takes
// the mean over its blocks (runtime/model). transformers'
// load_balancing_loss_func instead averages counts and probabilities over all
// blocks and then multiplies: here blocks live on different stages, and no
// stage sees the routers of the others. With one block both give the same
// number. With more, ours also asks each block to be balanced on its own, as
// the source does.
//
// Rows are sorted by expert, then by token, so that each expert multiplies
// consecutive rows: row s of S = T*k belongs to token row_token[s]. To gather
// them, use embedding.hpp with row_token as ids.
//
// Shapes:    T tokens, E experts, k of them for each token, S = T*k rows of D.
// Precision: the choice of experts, and the sum over a token's rows in order of
//            falling p, are the same on every backend if p is the same.
//            Probabilities and gradients are within 1e-5 of reference/ relative
//            to the largest value (tests/kernels/routing_test.cpp).
// Traffic:   route 2*T*E values; combine and its gradient about 2*S*D.
// Source:    W. Fedus et al.: Switch Transformers, JMLR 23 (2022), equations 4
//            to 6, for the balance; counts are constants in its gradient.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// Which rows of which expert belong to which token. Plain data, from route().
struct routing {
  std::size_t per_token = 0;            ///< k
  std::vector<std::size_t> first_row;   ///< of each expert, then S: E + 1
  std::vector<token_id> row_token;      ///< S
  std::vector<std::uint32_t> token_row; ///< row of token t's choice j: t*k + j

  std::size_t experts() const { return first_row.size() - 1; }
  std::size_t tokens() const { return row_token.size() / per_token; }
  std::size_t rows() const { return row_token.size(); }
  std::size_t rows_of(std::size_t expert) const {
    return first_row[expert + 1] - first_row[expert];
  }
};

/// Part of kernels::backend.
struct routing_ops {
  /// Replaces logits_TE by probabilities. Sets `to` and the weight of each of
  /// its rows; `normalised` divides the weights of a token by their sum.
  /// @pre 1 <= per_token <= E, weight_S has T * per_token values; no NaN
  virtual void
  route(routing& to, vector_view<float> weight_S, matrix_view<float> logits_TE,
        std::size_t per_token, bool normalised) = 0;

  /// Replaces the probabilities p_TE by the gradient of the logits, from the
  /// gradient of the weights and that of balance_scale * balance.
  virtual void
  route_backward(matrix_view<float> p_TE, vector_view<const float> dweight_S,
                 const routing& routes, bool normalised,
                 float balance_scale) = 0;

  /// Computes y_TD: for each token the sum of its rows of x_SD, multiplied by
  /// their weights unless weight_S is empty.
  virtual void
  combine(matrix_view<float> y_TD, matrix_view<const float> x_SD,
          vector_view<const float> weight_S, const routing& routes) = 0;

  /// Computes the gradients of both inputs of combine() with weights; dx_SD
  /// may be x_SD.
  virtual void
  combine_backward(matrix_view<float> dx_SD, vector_view<float> dweight_S,
                   matrix_view<const float> dy_TD,
                   matrix_view<const float> x_SD,
                   vector_view<const float> weight_S,
                   const routing& routes) = 0;

protected:
  ~routing_ops() = default;
};

/// Sorts rows by expert: `choice` holds the k experts of each token in order.
/// Every backend uses it: it is bookkeeping, not arithmetic.
void sort_rows(routing& to, const std::vector<std::uint32_t>& choice,
               std::size_t per_token, std::size_t experts);

/// The k largest of p_E, by falling value and rising index, into `out`.
void largest_of(const float* p_E, std::size_t experts, std::size_t per_token,
                std::uint32_t* out);

} // namespace shoal::kernels
