// kernels/cpu/layers/embedding.cpp -- gather by rows, scatter-add by columns.
//
// The scatter is cut into columns, so that each value of dw gets its addends
// in the order of t. Copies and sums are bound by memory: plain loops suffice.
#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"

namespace shoal::kernels::cpu {

namespace {

/// At least one cache line of columns, and enough of them that it does not
/// matter that each task reads the ids again.
constexpr std::size_t column_block = 64;

void check_ids(vector_view<const token_id> ids_T, std::size_t words) {
  for (std::size_t t = 0; t != ids_T.size; ++t)
    SHOAL_KERNEL_ASSERT(ids_T[t] >= 0
                        && static_cast<std::size_t>(ids_T[t]) < words);
}

} // namespace

void cpu_backend::embedding(matrix_view<float> y_TD,
                            matrix_view<const float> w_VD,
                            vector_view<const token_id> ids_T, into mode) {
  SHOAL_KERNEL_ASSERT(y_TD.rows == ids_T.size && y_TD.cols == w_VD.cols);
  check_ids(ids_T, w_VD.rows);
  for_ranges(team_, y_TD.rows, y_TD.cols,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t) {
                 auto* from = w_VD.row(static_cast<std::size_t>(ids_T[t]));
                 auto* to = y_TD.row(t);
                 if (mode == into::overwrite)
                   std::copy_n(from, y_TD.cols, to);
                 else
                   for (std::size_t d = 0; d != y_TD.cols; ++d)
                     to[d] += from[d];
               }
             });
}

void cpu_backend::embedding_weight_gradient(matrix_view<float> dw_VD,
                                            matrix_view<const float> dy_TD,
                                            vector_view<const token_id> ids_T) {
  SHOAL_KERNEL_ASSERT(dy_TD.rows == ids_T.size && dy_TD.cols == dw_VD.cols);
  check_ids(ids_T, dw_VD.rows);
  auto blocks = (dw_VD.cols + column_block - 1) / column_block;
  auto add_block = [&](std::size_t block) {
    auto first = block * column_block;
    auto last = std::min(dw_VD.cols, first + column_block);
    for (std::size_t t = 0; t != ids_T.size; ++t) {
      auto* to = dw_VD.row(static_cast<std::size_t>(ids_T[t]));
      auto* from = dy_TD.row(t);
      for (auto d = first; d != last; ++d)
        to[d] += from[d];
    }
  };
  for_ranges(team_, blocks, ids_T.size * column_block,
             [&](std::size_t first, std::size_t last) {
               for (auto block = first; block != last; ++block)
                 add_block(block);
             });
}

} // namespace shoal::kernels::cpu
