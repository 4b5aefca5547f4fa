// kernels/cpu/layers/matmul.cpp -- the products of a layer, as products of matrices.
#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"
#include "kernels/cpu/product/product.hpp"

#include <algorithm>

namespace shoal::kernels::cpu {

namespace {

/// A weight as the second operand of x * w^T.
gemm_operand forward_operand(matrix_view<const float> w, weight_order order) {
  const bool by_rows = order == weight_order::out_in;
  return {w.data, w.stride, by_rows ? transposed::yes : transposed::no};
}

std::size_t outputs(matrix_view<const float> w, weight_order order) {
  return order == weight_order::out_in ? w.rows : w.cols;
}

std::size_t inputs(matrix_view<const float> w, weight_order order) {
  return order == weight_order::out_in ? w.cols : w.rows;
}

/// Columns of one task of a bias gradient: 512 bytes of each row, which stay
/// in the first-level cache as running sums.
constexpr std::size_t column_block = 128;

} // namespace

product_engine cpu_backend::engine_for(factor_type factors) const {
  return factors == factor_type::bf16 && features_.bf16 ? bf16_engine(features_)
                                                        : f32_engine();
}

void cpu_backend::matmul(matrix_view<float> y_TO, matrix_view<const float> x_TI,
                         matrix_view<const float> w_OI,
                         vector_view<const float> bias_O, weight_order order,
                         factor_type factors) {
  SHOAL_KERNEL_ASSERT(y_TO.rows == x_TI.rows
                      && y_TO.cols == outputs(w_OI, order)
                      && x_TI.cols == inputs(w_OI, order)
                      && (bias_O.empty() || bias_O.size == y_TO.cols));
  product(team_, products_, engine_for(factors), y_TO, {x_TI.data, x_TI.stride},
          forward_operand(w_OI, order), x_TI.cols, false, bias_O);
}

void cpu_backend::matmul_input_gradient(matrix_view<float> dx_TI,
                                        matrix_view<const float> dy_TO,
                                        matrix_view<const float> w_OI,
                                        into mode, weight_order order,
                                        factor_type factors) {
  SHOAL_KERNEL_ASSERT(dx_TI.rows == dy_TO.rows
                      && dx_TI.cols == inputs(w_OI, order)
                      && dy_TO.cols == outputs(w_OI, order));
  const bool by_rows = order == weight_order::out_in;
  product(team_, products_, engine_for(factors), dx_TI,
          {dy_TO.data, dy_TO.stride},
          {w_OI.data, w_OI.stride, by_rows ? transposed::no : transposed::yes},
          dy_TO.cols, mode == into::add);
}

void cpu_backend::matmul_weight_gradient(matrix_view<float> dw_OI,
                                         matrix_view<const float> dy_TO,
                                         matrix_view<const float> x_TI,
                                         weight_order order,
                                         factor_type factors) {
  SHOAL_KERNEL_ASSERT(outputs(dw_OI, order) == dy_TO.cols
                      && inputs(dw_OI, order) == x_TI.cols
                      && dy_TO.rows == x_TI.rows);
  auto rows = dy_TO, cols = x_TI;
  if (order == weight_order::in_out)
    std::swap(rows, cols);
  product(team_, products_, engine_for(factors), dw_OI,
          {rows.data, rows.stride, transposed::yes}, {cols.data, cols.stride},
          x_TI.rows, true);
}

void cpu_backend::bias_gradient(vector_view<float> db_O,
                                matrix_view<const float> dy_TO) {
  SHOAL_KERNEL_ASSERT(db_O.size == dy_TO.cols);
  auto add_block = [&](std::size_t block) {
    auto first = block * column_block;
    auto size = std::min(db_O.size - first, column_block);
    float sum[column_block] = {};
    for (std::size_t t = 0; t != dy_TO.rows; ++t) {
      auto* from = dy_TO.row(t) + first;
      for (std::size_t o = 0; o != size; ++o)
        sum[o] += from[o];
    }
    for (std::size_t o = 0; o != size; ++o)
      db_O[first + o] += sum[o];
  };
  for_ranges(team_, (db_O.size + column_block - 1) / column_block,
             dy_TO.rows * column_block,
             [&](std::size_t first, std::size_t last) {
               for (auto block = first; block != last; ++block)
                 add_block(block);
             });
}

} // namespace shoal::kernels::cpu
