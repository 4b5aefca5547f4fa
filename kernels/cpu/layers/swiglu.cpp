// kernels/cpu/layers/swiglu.cpp -- silu(gate) * up and its gradients.
#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/layers/swiglu.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

/// 1 / (1 + exp(-g)). The argument is clamped to 88, the last whole number
/// whose exp is finite; beyond it the result is below 1e-38 anyway.
HWY_INLINE vec sigmoid(tag d, vec g) {
  auto e = hn::Exp(d, hn::Min(hn::Neg(g), hn::Set(d, 88.0f)));
  auto one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, e));
}

void swiglu_row(float* y, const float* gate, const float* up,
                std::size_t size) {
  const tag d;
  each_vector(size, [=](std::size_t i, std::size_t n) HWY_ATTR {
    auto g = load(d, gate + i, n);
    auto v = hn::Mul(hn::Mul(g, sigmoid(d, g)), load(d, up + i, n));
    store(v, d, y + i, n);
  });
}

/// `y` may be null.
void swiglu_row_gradient(float* dgate, float* dup, float* y, const float* dy,
                         const float* gate, const float* up, std::size_t size) {
  const tag d;
  auto one = hn::Set(d, 1.0f);
  each_vector(size, [=](std::size_t i, std::size_t n) HWY_ATTR {
    auto g = load(d, gate + i, n);
    auto u = load(d, up + i, n);
    auto dv = load(d, dy + i, n);
    auto s = sigmoid(d, g);
    auto slope = hn::Mul(s, hn::MulAdd(g, hn::Sub(one, s), one));
    store(hn::Mul(hn::Mul(dv, u), slope), d, dgate + i, n);
    store(hn::Mul(hn::Mul(dv, g), s), d, dup + i, n);
    if (y != nullptr)
      store(hn::Mul(hn::Mul(g, s), u), d, y + i, n);
  });
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(swiglu_row);
HWY_EXPORT(swiglu_row_gradient);

void cpu_backend::swiglu(matrix_view<float> y_TF,
                         matrix_view<const float> gate_TF,
                         matrix_view<const float> up_TF) {
  SHOAL_KERNEL_ASSERT(same_shape(y_TF, gate_TF) && same_shape(y_TF, up_TF));
  auto row = HWY_DYNAMIC_DISPATCH(swiglu_row);
  for_ranges(team_, y_TF.rows, y_TF.cols,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t)
                 row(y_TF.row(t), gate_TF.row(t), up_TF.row(t), y_TF.cols);
             });
}

void cpu_backend::swiglu_backward(matrix_view<float> dgate_TF,
                                  matrix_view<float> dup_TF,
                                  matrix_view<const float> dy_TF,
                                  matrix_view<const float> gate_TF,
                                  matrix_view<const float> up_TF,
                                  matrix_view<float> y_TF) {
  SHOAL_KERNEL_ASSERT(same_shape(dgate_TF, gate_TF) && same_shape(dup_TF, up_TF)
                      && same_shape(dy_TF, gate_TF)
                      && same_shape(dy_TF, up_TF));
  SHOAL_KERNEL_ASSERT(y_TF.empty() || same_shape(y_TF, dy_TF));
  auto row = HWY_DYNAMIC_DISPATCH(swiglu_row_gradient);
  for_ranges(team_, dy_TF.rows, dy_TF.cols,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t)
                 row(dgate_TF.row(t), dup_TF.row(t),
                     y_TF.empty() ? nullptr : y_TF.row(t), dy_TF.row(t),
                     gate_TF.row(t), up_TF.row(t), dy_TF.cols);
             });
}

} // namespace shoal::kernels::cpu
#endif
