// kernels/cpu/cross_entropy.cpp -- loss and gradient, rows in parallel.
//
// With a gradient wanted, the exponentials are stored there on the way and
// scaled afterwards, so each is computed once.
#include "kernels/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/parallel.hpp"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cross_entropy.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
#include "kernels/cpu/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

/// @returns the loss; `dx` may be null or `x`.
float cross_entropy_row(float* dx, const float* x, std::size_t size,
                        std::size_t target, float scale) {
  const tag d;
  const auto lanes = hn::Lanes(d);
  const auto at_target = x[target];
  auto high = hn::Set(d, at_target);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes)
    high = hn::Max(high, hn::LoadU(d, x + i));
  for (; i != size; ++i)
    high = hn::Max(high, hn::Set(d, x[i]));
  const auto largest = hn::GetLane(hn::MaxOfLanes(d, high));

  auto shift = hn::Set(d, largest);
  auto sum = hn::Zero(d);
  each_vector(size, [&](std::size_t j, std::size_t n) HWY_ATTR {
    auto e = hn::Exp(d, hn::Sub(load(d, x + j, n), shift));
    if (n != lanes)
      e = hn::IfThenElseZero(hn::FirstN(d, n), e);
    sum = hn::Add(sum, e);
    if (dx != nullptr)
      store(e, d, dx + j, n);
  });
  const auto total = sum_of(sum);
  if (dx != nullptr) {
    auto factor = hn::Set(d, scale / total);
    each_vector(size, [&](std::size_t j, std::size_t n) HWY_ATTR {
      store(hn::Mul(load(d, dx + j, n), factor), d, dx + j, n);
    });
    dx[target] -= scale;
  }
  return (largest - at_target) + std::log(total);
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels::cpu {

HWY_EXPORT(cross_entropy_row);

void cpu_backend::cross_entropy(vector_view<float> loss_T,
                                matrix_view<float> dlogits_TV,
                                matrix_view<const float> logits_TV,
                                vector_view<const token_id> targets_T,
                                float scale) {
  auto V = logits_TV.cols;
  auto with_gradient = !dlogits_TV.empty();
  SHOAL_KERNEL_ASSERT(loss_T.size == logits_TV.rows
                      && targets_T.size == logits_TV.rows
                      && (!with_gradient || same_shape(dlogits_TV, logits_TV)));
  auto row = HWY_DYNAMIC_DISPATCH(cross_entropy_row);
  auto one = [&](std::size_t t) {
    auto target = targets_T[t];
    auto* dx = with_gradient ? dlogits_TV.row(t) : nullptr;
    if (target == -1) {
      loss_T[t] = 0;
      if (with_gradient)
        std::fill_n(dx, V, 0.0f);
      return;
    }
    SHOAL_KERNEL_ASSERT(target >= 0 && static_cast<std::size_t>(target) < V);
    loss_T[t] =
      row(dx, logits_TV.row(t), V, static_cast<std::size_t>(target), scale);
  };
  for_ranges(team_, logits_TV.rows, V,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t)
                 one(t);
             });
}

} // namespace shoal::kernels::cpu
#endif
