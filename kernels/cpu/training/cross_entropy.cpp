// kernels/cpu/training/cross_entropy.cpp -- loss and gradient, rows in parallel.
//
// If a gradient is wanted, its memory first holds the exponentials and is
// scaled afterwards, so each exponential is computed once.
#include "kernels/common/check.hpp"
#include "kernels/cpu/backend.hpp"
#include "kernels/cpu/isa/parallel.hpp"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/training/cross_entropy.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
#include "kernels/cpu/isa/simd-inl.hpp"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

/// @returns the loss; `dx` may be null or `x`.
float cross_entropy_row(float* dx, const float* x, std::size_t size,
                        std::size_t target, float scale, float softcap) {
  const tag d;
  const auto lanes = hn::Lanes(d);
  auto cap = hn::Set(d, softcap);
  auto one_over_cap = hn::Set(d, softcap > 0 ? 1 / softcap : 0);
  auto bend = [&](auto v) HWY_ATTR {
    if (softcap > 0)
      v = hn::Mul(cap, hn::Tanh(d, hn::Mul(v, one_over_cap)));
    return v;
  };
  const auto at_target = hn::GetLane(bend(hn::Set(d, x[target])));
  auto high = hn::Set(d, x[target]);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes)
    high = hn::Max(high, hn::LoadU(d, x + i));
  for (; i != size; ++i)
    high = hn::Max(high, hn::Set(d, x[i]));
  // The soft cap keeps the order, so the largest value stays the largest.
  const auto largest = hn::GetLane(bend(hn::MaxOfLanes(d, high)));

  auto shift = hn::Set(d, largest);
  auto sum = hn::Zero(d);
  each_vector(size, [&](std::size_t j, std::size_t n) HWY_ATTR {
    auto e = hn::Exp(d, hn::Sub(bend(load(d, x + j, n)), shift));
    if (n != lanes)
      e = hn::IfThenElseZero(hn::FirstN(d, n), e);
    sum = hn::Add(sum, e);
    if (dx != nullptr)
      store(e, d, dx + j, n);
  });
  const auto total = sum_of(sum);
  if (dx != nullptr) {
    auto factor = hn::Set(d, scale / total);
    const auto p_target = dx[target] * (scale / total);
    auto least = hn::Set(d, std::numeric_limits<float>::min());
    auto one = hn::Set(d, 1.0f);
    each_vector(size, [&](std::size_t j, std::size_t n) HWY_ATTR {
      auto e = load(d, dx + j, n);
      auto v = hn::Mul(e, factor);
      if (softcap > 0) { // dx may be x: recover the capped value from e
        auto t =
          hn::Mul(hn::Add(hn::Log(d, hn::Max(e, least)), shift), one_over_cap);
        v = hn::Mul(v, hn::NegMulAdd(t, t, one));
      }
      store(v, d, dx + j, n);
    });
    const auto t = softcap > 0 ? at_target / softcap : 0.0f;
    dx[target] = (p_target - scale) * (1 - t * t);
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
                                float scale, float softcap) {
  auto V = logits_TV.cols;
  auto with_gradient = !dlogits_TV.empty();
  SHOAL_KERNEL_ASSERT(loss_T.size == logits_TV.rows
                      && targets_T.size == logits_TV.rows
                      && (!with_gradient || same_shape(dlogits_TV, logits_TV)));
  auto row = HWY_DYNAMIC_DISPATCH(cross_entropy_row);
  auto row_task = [&](std::size_t t) {
    auto target = targets_T[t];
    auto* dx = with_gradient ? dlogits_TV.row(t) : nullptr;
    if (target == -1) {
      loss_T[t] = 0;
      if (with_gradient)
        std::fill_n(dx, V, 0.0f);
      return;
    }
    SHOAL_KERNEL_ASSERT(target >= 0 && static_cast<std::size_t>(target) < V);
    loss_T[t] = row(dx, logits_TV.row(t), V, static_cast<std::size_t>(target),
                    scale, softcap);
  };
  for_ranges(team_, logits_TV.rows, V,
             [&](std::size_t first, std::size_t last) {
               for (auto t = first; t != last; ++t)
                 row_task(t);
             });
}

} // namespace shoal::kernels::cpu
#endif
