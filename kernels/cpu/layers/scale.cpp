// kernels/cpu/layers/scale.cpp -- functions of single values, in place.
#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layers/scale.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

void scale_values(float* x, std::size_t size, float factor) {
  const tag d;
  auto factors = hn::Set(d, factor);
  each_vector(size, [=](std::size_t i, std::size_t n) HWY_ATTR {
    store(hn::Mul(load(d, x + i, n), factors), d, x + i, n);
  });
}

void cap_values(float* x, std::size_t size, float cap) {
  const tag d;
  auto limit = hn::Set(d, cap);
  auto part = hn::Set(d, 1 / cap);
  each_vector(size, [=](std::size_t i, std::size_t n) HWY_ATTR {
    auto t = hn::Tanh(d, hn::Mul(load(d, x + i, n), part));
    store(hn::Mul(limit, t), d, x + i, n);
  });
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(scale_values);
HWY_EXPORT(cap_values);

void cpu_backend::scale(matrix_view<float> x_TD, float factor) {
  auto row = HWY_DYNAMIC_DISPATCH(scale_values);
  for_ranges(team_, x_TD.rows, x_TD.cols,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t)
                 row(x_TD.row(t), x_TD.cols, factor);
             });
}

void cpu_backend::softcap(matrix_view<float> x_TD, float cap) {
  SHOAL_KERNEL_ASSERT(cap > 0);
  auto row = HWY_DYNAMIC_DISPATCH(cap_values);
  for_ranges(team_, x_TD.rows, x_TD.cols,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t)
                 row(x_TD.row(t), x_TD.cols, cap);
             });
}

} // namespace shoal::kernels::cpu
#endif
