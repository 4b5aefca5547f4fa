// kernels/cpu/matmul.cpp -- products cut into tiles of the output.
//
// Each tile sums over the whole depth in one single-threaded call, so no sum
// is ever split and the bits depend on shapes and strides alone.
#include "kernels/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/gemm.hpp"
#include "kernels/cpu/parallel.hpp"

#include <algorithm>

namespace shoal::kernels::cpu {

namespace {

/// Side of a tile. Against one call for the whole product, one thread keeps
/// 83-90 % of the speed with tiles of 128 x 128 and 92-96 % with 256 x 256
/// (512 x 512 x 512, AVX-512, oneDNN 2.6.3, 2026-11); smaller tiles feed more
/// threads.
constexpr std::size_t tile_small = 128;
constexpr std::size_t tile_large = 256;
/// Outputs from which large tiles still make 32 tasks.
constexpr std::size_t large_outputs = 32 * tile_large * tile_large;
/// Multiply-adds below which a second thread costs more than it brings:
/// some 10 us on one thread.
constexpr std::size_t parallel_work = 1 << 19;

struct grid {
  std::size_t rows, cols;     ///< of a tile
  std::size_t rows_n, cols_n; ///< number of tiles each way
};

/// Cuts `size` into equal parts of at most `tile`, rounded up to whole
/// registers of 16 floats.
std::size_t part(std::size_t size, std::size_t tile) {
  auto parts = (size + tile - 1) / tile;
  auto each = (size + parts - 1) / parts;
  return (each + 15) / 16 * 16;
}

grid make_grid(std::size_t rows, std::size_t cols) {
  auto tile = rows * cols >= large_outputs ? tile_large : tile_small;
  grid g;
  g.rows = part(rows, tile);
  g.cols = part(cols, tile);
  g.rows_n = (rows + g.rows - 1) / g.rows;
  g.cols_n = (cols + g.cols - 1) / g.cols;
  return g;
}

gemm_operand advance(gemm_operand x, std::size_t rows, std::size_t cols) {
  if (x.order == transposed::yes)
    std::swap(rows, cols);
  x.data += rows * x.stride + cols;
  return x;
}

/// Each row of c begins as `start`, if that is not empty: a bias is written
/// where the product of the tile is added at once, while it is in the cache.
void tiled(thread_team& team, matrix_view<float> c, gemm_operand a,
           gemm_operand b, std::size_t depth, float beta,
           vector_view<const float> start = {}) {
  if (c.empty())
    return;
  auto g = make_grid(c.rows, c.cols);
  auto tile = [&](std::size_t task, unsigned) {
    auto r = task / g.cols_n * g.rows;
    auto k = task % g.cols_n * g.cols;
    auto out = c.slice_rows(r, std::min(c.rows, r + g.rows))
                 .slice_cols(k, std::min(c.cols, k + g.cols));
    if (!start.empty())
      for (std::size_t t = 0; t != out.rows; ++t)
        std::copy_n(start.data + k, out.cols, out.row(t));
    gemm(out, advance(a, r, 0), advance(b, 0, k), depth, 1, beta);
  };
  auto tasks = g.rows_n * g.cols_n;
  if (c.rows * c.cols * depth >= parallel_work)
    team.run(tasks, tile);
  else
    for (std::size_t task = 0; task != tasks; ++task)
      tile(task, 0);
}

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

void cpu_backend::matmul(matrix_view<float> y_TO, matrix_view<const float> x_TI,
                         matrix_view<const float> w_OI,
                         vector_view<const float> bias_O, weight_order order) {
  SHOAL_KERNEL_ASSERT(y_TO.rows == x_TI.rows
                      && y_TO.cols == outputs(w_OI, order)
                      && x_TI.cols == inputs(w_OI, order)
                      && (bias_O.empty() || bias_O.size == y_TO.cols));
  tiled(team_, y_TO, {x_TI.data, x_TI.stride}, forward_operand(w_OI, order),
        x_TI.cols, bias_O.empty() ? 0.0f : 1.0f, bias_O);
}

void cpu_backend::matmul_input_gradient(matrix_view<float> dx_TI,
                                        matrix_view<const float> dy_TO,
                                        matrix_view<const float> w_OI,
                                        into mode, weight_order order) {
  SHOAL_KERNEL_ASSERT(dx_TI.rows == dy_TO.rows
                      && dx_TI.cols == inputs(w_OI, order)
                      && dy_TO.cols == outputs(w_OI, order));
  const bool by_rows = order == weight_order::out_in;
  tiled(team_, dx_TI, {dy_TO.data, dy_TO.stride},
        {w_OI.data, w_OI.stride, by_rows ? transposed::no : transposed::yes},
        dy_TO.cols, mode == into::add ? 1.0f : 0.0f);
}

void cpu_backend::matmul_weight_gradient(matrix_view<float> dw_OI,
                                         matrix_view<const float> dy_TO,
                                         matrix_view<const float> x_TI,
                                         weight_order order) {
  SHOAL_KERNEL_ASSERT(outputs(dw_OI, order) == dy_TO.cols
                      && inputs(dw_OI, order) == x_TI.cols
                      && dy_TO.rows == x_TI.rows);
  auto rows = dy_TO, cols = x_TI;
  if (order == weight_order::in_out)
    std::swap(rows, cols);
  tiled(team_, dw_OI, {rows.data, rows.stride, transposed::yes},
        {cols.data, cols.stride}, x_TI.rows, 1);
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
