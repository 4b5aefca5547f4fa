// kernels/cpu/layers/add.cpp -- sums of two arrays.
#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layers/add.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

void add_row(float* y, const float* a, const float* b, std::size_t size) {
  const tag d;
  each_vector(size, [=](std::size_t i, std::size_t n) HWY_ATTR {
    store(hn::Add(load(d, a + i, n), load(d, b + i, n)), d, y + i, n);
  });
}

void add_both_values(float* a, float* b, std::size_t size) {
  const tag d;
  each_vector(size, [=](std::size_t i, std::size_t n) HWY_ATTR {
    const auto sum = hn::Add(load(d, a + i, n), load(d, b + i, n));
    store(sum, d, a + i, n);
    store(sum, d, b + i, n);
  });
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(add_row);
HWY_EXPORT(add_both_values);

void cpu_backend::add(matrix_view<float> y_TD, matrix_view<const float> a_TD,
                      matrix_view<const float> b_TD) {
  SHOAL_KERNEL_ASSERT(same_shape(y_TD, a_TD) && same_shape(y_TD, b_TD));
  auto row = HWY_DYNAMIC_DISPATCH(add_row);
  for_ranges(team_, y_TD.rows, y_TD.cols,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t)
                 row(y_TD.row(t), a_TD.row(t), b_TD.row(t), y_TD.cols);
             });
}

void cpu_backend::add_both(vector_view<float> a_P, vector_view<float> b_P) {
  SHOAL_KERNEL_ASSERT(a_P.size == b_P.size);
  auto values = HWY_DYNAMIC_DISPATCH(add_both_values);
  for_ranges(team_, a_P.size, 1, [&](std::size_t first, std::size_t last) {
    values(a_P.data + first, b_P.data + first, last - first);
  });
}

} // namespace shoal::kernels::cpu
#endif
