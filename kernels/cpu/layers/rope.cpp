// kernels/cpu/layers/rope.cpp -- rotation of the two halves of each head.
//
// Products and sums are rounded one by one (no fused multiply-add), as in
// reference/, so that both give the same bits.
#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layers/rope.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

void rotate_row(float* x, std::size_t size, const float* cos, const float* sin,
                std::size_t half, float direction) {
  const tag d;
  auto sign = hn::Set(d, direction);
  for (std::size_t h = 0; h != size; h += 2 * half)
    each_vector(half, [&](std::size_t i, std::size_t n) HWY_ATTR {
      auto c = load(d, cos + i, n);
      auto s = hn::Mul(load(d, sin + i, n), sign);
      auto a = load(d, x + h + i, n);
      auto b = load(d, x + h + half + i, n);
      store(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), d, x + h + i, n);
      store(hn::Add(hn::Mul(b, c), hn::Mul(a, s)), d, x + h + half + i, n);
    });
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(rotate_row);

namespace {

void rotate(thread_team& team, matrix_view<float> x_TNH,
            vector_view<const std::int32_t> positions_T,
            const rope_table& table, float direction) {
  SHOAL_KERNEL_ASSERT(positions_T.size == x_TNH.rows
                      && x_TNH.cols % table.head_size == 0);
  auto half = table.head_size / 2;
  auto row = HWY_DYNAMIC_DISPATCH(rotate_row);
  for_ranges(team, x_TNH.rows, x_TNH.cols,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t) {
                 SHOAL_KERNEL_ASSERT(positions_T[t] >= 0);
                 auto p = static_cast<std::size_t>(positions_T[t]);
                 SHOAL_KERNEL_ASSERT(p < table.positions);
                 row(x_TNH.row(t), x_TNH.cols, table.cos_PH2.data() + p * half,
                     table.sin_PH2.data() + p * half, half, direction);
               }
             });
}

} // namespace

void cpu_backend::rope(matrix_view<float> x_TNH,
                       vector_view<const std::int32_t> positions_T,
                       const rope_table& table) {
  rotate(team_, x_TNH, positions_T, table, 1);
}

void cpu_backend::rope_backward(matrix_view<float> dx_TNH,
                                vector_view<const std::int32_t> positions_T,
                                const rope_table& table) {
  rotate(team_, dx_TNH, positions_T, table, -1);
}

} // namespace shoal::kernels::cpu
#endif
