// kernels/cpu/training/adamw.cpp -- one step in vectors, in the order of adamw.hpp.
#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/training/adamw.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

void adamw_range(float* w, float* m, float* v, const float* g, std::size_t size,
                 const adamw_factors& f) {
  const tag d;
  auto decay = hn::Set(d, f.decay);
  auto one_minus_b1 = hn::Set(d, f.one_minus_b1);
  auto b2 = hn::Set(d, f.b2);
  auto one_minus_b2 = hn::Set(d, f.one_minus_b2);
  auto minus_step = hn::Set(d, f.minus_step);
  auto bias2_sqrt = hn::Set(d, f.bias2_sqrt);
  auto epsilon = hn::Set(d, f.epsilon);
  auto scale = hn::Set(d, f.gradient_scale);
  each_vector(size, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto gs = hn::Mul(load(d, g + i, n), scale);
    auto m0 = load(d, m + i, n);
    auto m1 = hn::Add(m0, hn::Mul(hn::Sub(gs, m0), one_minus_b1));
    auto v1 = hn::Add(hn::Mul(load(d, v + i, n), b2),
                      hn::Mul(hn::Mul(one_minus_b2, gs), gs));
    auto denominator = hn::Add(hn::Div(hn::Sqrt(v1), bias2_sqrt), epsilon);
    auto w0 = hn::Mul(load(d, w + i, n), decay);
    auto w1 = hn::Add(w0, hn::Div(hn::Mul(minus_step, m1), denominator));
    store(w1, d, w + i, n);
    store(m1, d, m + i, n);
    store(v1, d, v + i, n);
  });
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(adamw_range);

void cpu_backend::adamw(vector_view<float> w_P, vector_view<float> m_P,
                        vector_view<float> v_P, vector_view<const float> g_P,
                        const adamw_options& options) {
  SHOAL_KERNEL_ASSERT(w_P.size == m_P.size && w_P.size == v_P.size
                      && w_P.size == g_P.size);
  auto factors = make_adamw_factors(options);
  auto range = HWY_DYNAMIC_DISPATCH(adamw_range);
  for_ranges(team_, w_P.size, 4, [&](std::size_t first, std::size_t last) {
    range(w_P.data + first, m_P.data + first, v_P.data + first,
          g_P.data + first, last - first, factors);
  });
}

} // namespace shoal::kernels::cpu
#endif
