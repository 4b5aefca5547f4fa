// kernels/layers/embedding.hpp -- one row of a table for each token.
//
//   y[t,:] = w[ids[t],:]                         or added to y
//   dw[ids[t],:] += dy[t,:]                      (W, in the order of t)
//
// Shapes:    T tokens, V words in the vocabulary, D model width.
// Precision: cpu equals reference/ to the last bit.
// Traffic:   2*T*D values forward, 3*T*D backward.
#pragma once

#include "kernels/common/tensor.hpp"

namespace shoal::kernels {

/// Part of kernels::backend. @pre 0 <= ids[t] < V
struct embedding_ops {
  /// Gathers y_TD from the rows of w_VD, or adds them to it.
  virtual void
  embedding(matrix_view<float> y_TD, matrix_view<const float> w_VD,
            vector_view<const token_id> ids_T, into mode = into::overwrite) = 0;

  /// Adds each row of dy_TD to the row of dw_VD that embedding() read for it.
  virtual void embedding_weight_gradient(matrix_view<float> dw_VD,
                                         matrix_view<const float> dy_TD,
                                         vector_view<const token_id> ids_T) = 0;

protected:
  ~embedding_ops() = default;
};

} // namespace shoal::kernels
