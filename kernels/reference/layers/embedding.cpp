// kernels/reference/layers/embedding.cpp -- gather and scatter-add of rows.
#include "kernels/common/check.hpp"
#include "kernels/reference/backend.hpp"

#include <algorithm>

namespace shoal::kernels::reference {

void reference_backend::embedding(matrix_view<float> y_TD,
                                  matrix_view<const float> w_VD,
                                  vector_view<const token_id> ids_T,
                                  into mode) {
  SHOAL_KERNEL_ASSERT(y_TD.rows == ids_T.size && y_TD.cols == w_VD.cols);
  for (std::size_t t = 0; t != ids_T.size; ++t) {
    SHOAL_KERNEL_ASSERT(ids_T[t] >= 0
                        && static_cast<std::size_t>(ids_T[t]) < w_VD.rows);
    auto* from = w_VD.row(static_cast<std::size_t>(ids_T[t]));
    if (mode == into::overwrite)
      std::copy_n(from, y_TD.cols, y_TD.row(t));
    else
      for (std::size_t d = 0; d != y_TD.cols; ++d)
        y_TD(t, d) += from[d];
  }
}

void reference_backend::embedding_weight_gradient(
  matrix_view<float> dw_VD, matrix_view<const float> dy_TD,
  vector_view<const token_id> ids_T) {
  SHOAL_KERNEL_ASSERT(dy_TD.rows == ids_T.size && dy_TD.cols == dw_VD.cols);
  for (std::size_t t = 0; t != ids_T.size; ++t) {
    SHOAL_KERNEL_ASSERT(ids_T[t] >= 0
                        && static_cast<std::size_t>(ids_T[t]) < dw_VD.rows);
    auto* to = dw_VD.row(static_cast<std::size_t>(ids_T[t]));
    for (std::size_t d = 0; d != dw_VD.cols; ++d)
      to[d] += dy_TD(t, d);
  }
}

} // namespace shoal::kernels::reference
