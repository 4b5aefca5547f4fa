// kernels/cpu/layers/layernorm.cpp -- normalization, rows in parallel.
//
// The weight gradient is cut into columns, so that each of its values is one
// sum over t in order.
#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layers/layernorm.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

/// Sets the mean. @returns 1 / deviation
float layernorm_row(float* y, const float* x, const float* w, const float* b,
                    std::size_t size, float eps, float* mean) {
  const tag d;
  const auto lanes = hn::Lanes(d);
  const auto count = static_cast<float>(size);
  auto sum = hn::Zero(d);
  each_vector(size, [&](std::size_t i, std::size_t n)
                      HWY_ATTR { sum = hn::Add(sum, load(d, x + i, n)); });
  *mean = sum_of(sum) / count;
  auto middle = hn::Set(d, *mean);
  auto squares = hn::Zero(d);
  each_vector(size, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto v = hn::Sub(load(d, x + i, n), middle);
    if (n != lanes)
      v = hn::IfThenElseZero(hn::FirstN(d, n), v);
    squares = hn::MulAdd(v, v, squares);
  });
  const auto r = 1.0f / std::sqrt(sum_of(squares) / count + eps);
  auto factor = hn::Set(d, r);
  each_vector(size, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto v = hn::Mul(hn::Sub(load(d, x + i, n), middle), factor);
    store(hn::MulAdd(v, load(d, w + i, n), load(d, b + i, n)), d, y + i, n);
  });
  return r;
}

void layernorm_row_gradient(float* dx, const float* dy, const float* x,
                            const float* w, std::size_t size, float mean,
                            float r, into mode) {
  const tag d;
  const auto count = static_cast<float>(size);
  auto middle = hn::Set(d, mean);
  auto factor = hn::Set(d, r);
  auto sum = hn::Zero(d);
  auto dot = hn::Zero(d);
  each_vector(size, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto g = hn::Mul(load(d, dy + i, n), load(d, w + i, n));
    auto xh = hn::Mul(hn::Sub(load(d, x + i, n), middle), factor);
    sum = hn::Add(sum, g);
    dot = hn::MulAdd(g, xh, dot);
  });
  auto shift = hn::Set(d, sum_of(sum) / count);
  auto pull = hn::Set(d, sum_of(dot) / count);
  each_vector(size, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto g = hn::Mul(load(d, dy + i, n), load(d, w + i, n));
    auto xh = hn::Mul(hn::Sub(load(d, x + i, n), middle), factor);
    auto v = hn::Mul(factor, hn::NegMulAdd(pull, xh, hn::Sub(g, shift)));
    if (mode == into::add)
      v = hn::Add(load(d, dx + i, n), v);
    store(v, d, dx + i, n);
  });
}

/// weight[d] += dy[d] * (x[d] - mean) * r, bias[d] += dy[d]
void layernorm_weight_row(float* weight, float* bias, const float* dy,
                          const float* x, std::size_t size, float mean,
                          float r) {
  const tag d;
  auto middle = hn::Set(d, mean);
  auto factor = hn::Set(d, r);
  each_vector(size, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto xh = hn::Mul(hn::Sub(load(d, x + i, n), middle), factor);
    auto g = load(d, dy + i, n);
    store(hn::MulAdd(g, xh, load(d, weight + i, n)), d, weight + i, n);
    store(hn::Add(g, load(d, bias + i, n)), d, bias + i, n);
  });
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(layernorm_row);
HWY_EXPORT(layernorm_row_gradient);
HWY_EXPORT(layernorm_weight_row);

namespace {

/// Columns of one task of the weight gradient: 512 bytes of each row, which
/// stay in the first-level cache as running sums.
constexpr std::size_t column_block = 128;

bool fits(matrix_view<const float> stats_2T, matrix_view<const float> x_TD) {
  return stats_2T.rows == 2 && stats_2T.cols == x_TD.rows;
}

} // namespace

void cpu_backend::layernorm(matrix_view<float> y_TD,
                            matrix_view<float> stats_2T,
                            matrix_view<const float> x_TD,
                            vector_view<const float> w_D,
                            vector_view<const float> b_D, float eps) {
  SHOAL_KERNEL_ASSERT(same_shape(y_TD, x_TD) && w_D.size == x_TD.cols
                      && b_D.size == x_TD.cols && eps > 0
                      && (stats_2T.empty() || fits(stats_2T, x_TD)));
  auto row = HWY_DYNAMIC_DISPATCH(layernorm_row);
  for_ranges(team_, x_TD.rows, x_TD.cols,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t) {
                 float mean = 0;
                 auto r = row(y_TD.row(t), x_TD.row(t), w_D.data, b_D.data,
                              x_TD.cols, eps, &mean);
                 if (!stats_2T.empty()) {
                   stats_2T(0, t) = mean;
                   stats_2T(1, t) = r;
                 }
               }
             });
}

void cpu_backend::layernorm_input_gradient(matrix_view<float> dx_TD,
                                           matrix_view<const float> dy_TD,
                                           matrix_view<const float> x_TD,
                                           vector_view<const float> w_D,
                                           matrix_view<const float> stats_2T,
                                           into mode) {
  SHOAL_KERNEL_ASSERT(same_shape(dx_TD, x_TD) && same_shape(dy_TD, x_TD)
                      && w_D.size == x_TD.cols && fits(stats_2T, x_TD));
  auto row = HWY_DYNAMIC_DISPATCH(layernorm_row_gradient);
  for_ranges(team_, x_TD.rows, x_TD.cols,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t)
                 row(dx_TD.row(t), dy_TD.row(t), x_TD.row(t), w_D.data,
                     x_TD.cols, stats_2T(0, t), stats_2T(1, t), mode);
             });
}

void cpu_backend::layernorm_weight_gradient(vector_view<float> dw_D,
                                            vector_view<float> db_D,
                                            matrix_view<const float> dy_TD,
                                            matrix_view<const float> x_TD,
                                            matrix_view<const float> stats_2T) {
  SHOAL_KERNEL_ASSERT(dw_D.size == x_TD.cols && db_D.size == x_TD.cols
                      && same_shape(dy_TD, x_TD) && fits(stats_2T, x_TD));
  auto row = HWY_DYNAMIC_DISPATCH(layernorm_weight_row);
  auto add_block = [&](std::size_t block) {
    auto first = block * column_block;
    auto size = std::min(dw_D.size - first, column_block);
    HWY_ALIGN float weight[column_block] = {};
    HWY_ALIGN float bias[column_block] = {};
    for (std::size_t t = 0; t != x_TD.rows; ++t)
      row(weight, bias, dy_TD.row(t) + first, x_TD.row(t) + first, size,
          stats_2T(0, t), stats_2T(1, t));
    for (std::size_t d = 0; d != size; ++d) {
      dw_D[first + d] += weight[d];
      db_D[first + d] += bias[d];
    }
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
