// kernels/cpu/layers/rmsnorm.cpp -- normalization, rows in parallel.
//
// The weight gradient is cut into columns, so that each of its values is one
// sum over t in order.
#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layers/rmsnorm.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

float norm_row(float* y, const float* x, const float* w, std::size_t size,
               float eps, float offset) {
  const tag d;
  auto squares = hn::Zero(d);
  each_vector(size, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto v = load(d, x + i, n);
    squares = hn::MulAdd(v, v, squares);
  });
  auto r = 1.0f / std::sqrt(sum_of(squares) / static_cast<float>(size) + eps);
  auto factor = hn::Set(d, r);
  auto shift = hn::Set(d, offset);
  each_vector(size, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto v = hn::Mul(load(d, x + i, n), factor);
    store(hn::Mul(v, hn::Add(load(d, w + i, n), shift)), d, y + i, n);
  });
  return r;
}

void norm_row_gradient(float* dx, const float* dy, const float* x,
                       const float* w, std::size_t size, float r, into mode,
                       float offset) {
  const tag d;
  auto shift = hn::Set(d, offset);
  auto dot = hn::Zero(d);
  each_vector(size, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto g = hn::Mul(load(d, dy + i, n), hn::Add(load(d, w + i, n), shift));
    dot = hn::MulAdd(g, load(d, x + i, n), dot);
  });
  auto pull = hn::Set(d, sum_of(dot) * r * r / static_cast<float>(size));
  auto factor = hn::Set(d, r);
  each_vector(size, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto g = hn::Mul(load(d, dy + i, n), hn::Add(load(d, w + i, n), shift));
    auto v = hn::Mul(factor, hn::NegMulAdd(pull, load(d, x + i, n), g));
    if (mode == into::add)
      v = hn::Add(load(d, dx + i, n), v);
    store(v, d, dx + i, n);
  });
}

/// sum[d] += dy[d] * (x[d] * r)
void norm_weight_row(float* sum, const float* dy, const float* x,
                     std::size_t size, float r) {
  const tag d;
  auto factor = hn::Set(d, r);
  each_vector(size, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto scaled = hn::Mul(load(d, x + i, n), factor);
    auto s = hn::MulAdd(load(d, dy + i, n), scaled, load(d, sum + i, n));
    store(s, d, sum + i, n);
  });
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(norm_row);
HWY_EXPORT(norm_row_gradient);
HWY_EXPORT(norm_weight_row);

namespace {

/// Columns of one task of the weight gradient: 512 bytes of each row, which
/// stay in the first-level cache as running sums.
constexpr std::size_t column_block = 128;

} // namespace

void cpu_backend::rmsnorm(matrix_view<float> y_TD, vector_view<float> r_T,
                          matrix_view<const float> x_TD,
                          vector_view<const float> w_D, float eps,
                          float offset) {
  SHOAL_KERNEL_ASSERT(same_shape(y_TD, x_TD) && w_D.size == x_TD.cols && eps > 0
                      && (r_T.empty() || r_T.size == x_TD.rows));
  auto row = HWY_DYNAMIC_DISPATCH(norm_row);
  for_ranges(
    team_, x_TD.rows, x_TD.cols, [&](std::size_t first, std::size_t last) {
      for (auto t = first; t != last; ++t) {
        auto r =
          row(y_TD.row(t), x_TD.row(t), w_D.data, x_TD.cols, eps, offset);
        if (!r_T.empty())
          r_T[t] = r;
      }
    });
}

void cpu_backend::rmsnorm_input_gradient(matrix_view<float> dx_TD,
                                         matrix_view<const float> dy_TD,
                                         matrix_view<const float> x_TD,
                                         vector_view<const float> w_D,
                                         vector_view<const float> r_T,
                                         into mode, float offset) {
  SHOAL_KERNEL_ASSERT(same_shape(dx_TD, x_TD) && same_shape(dy_TD, x_TD)
                      && w_D.size == x_TD.cols && r_T.size == x_TD.rows);
  auto row = HWY_DYNAMIC_DISPATCH(norm_row_gradient);
  for_ranges(team_, x_TD.rows, x_TD.cols,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t)
                 row(dx_TD.row(t), dy_TD.row(t), x_TD.row(t), w_D.data,
                     x_TD.cols, r_T[t], mode, offset);
             });
}

void cpu_backend::rmsnorm_weight_gradient(vector_view<float> dw_D,
                                          matrix_view<const float> dy_TD,
                                          matrix_view<const float> x_TD,
                                          vector_view<const float> r_T) {
  SHOAL_KERNEL_ASSERT(dw_D.size == x_TD.cols && same_shape(dy_TD, x_TD)
                      && r_T.size == x_TD.rows);
  auto row = HWY_DYNAMIC_DISPATCH(norm_weight_row);
  auto add_block = [&](std::size_t block) {
    auto first = block * column_block;
    auto size = std::min(dw_D.size - first, column_block);
    HWY_ALIGN float sum[column_block] = {};
    for (std::size_t t = 0; t != x_TD.rows; ++t)
      row(sum, dy_TD.row(t) + first, x_TD.row(t) + first, size, r_T[t]);
    for (std::size_t d = 0; d != size; ++d)
      dw_D[first + d] += sum[d];
  };
  auto blocks = (dw_D.size + column_block - 1) / column_block;
  for_ranges(team_, blocks, x_TD.rows * column_block,
             [&](std::size_t first, std::size_t last) {
               for (auto block = first; block != last; ++block)
                 add_block(block);
             });
}

} // namespace shoal::kernels::cpu
#endif
