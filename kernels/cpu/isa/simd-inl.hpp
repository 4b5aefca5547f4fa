// kernels/cpu/isa/simd-inl.hpp -- loops over vectors with a tail, per target.
//
// Included once for each instruction set, after hwy/highway.h, from files
// that are compiled with foreach_target.h.
#if defined(SHOAL_KERNELS_SIMD_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHOAL_KERNELS_SIMD_INL
#undef SHOAL_KERNELS_SIMD_INL
#else
#define SHOAL_KERNELS_SIMD_INL
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using tag = hn::ScalableTag<float>;
using vec = hn::Vec<tag>;

/// Loads `n` <= lanes values; the rest is 0. Reads nothing past them.
HWY_INLINE vec load(tag d, const float* from, std::size_t n) {
  if (HWY_LIKELY(n == hn::Lanes(d)))
    return hn::LoadU(d, from);
  HWY_ALIGN float part[hn::MaxLanes(tag())] = {};
  n = n < hn::MaxLanes(d) ? n : hn::MaxLanes(d); // GCC does not see that it is
  std::memcpy(part, from, n * sizeof(float));
  return hn::Load(d, part);
}

/// Stores the first `n` <= lanes values.
HWY_INLINE void store(vec v, tag d, float* to, std::size_t n) {
  if (HWY_LIKELY(n == hn::Lanes(d))) {
    hn::StoreU(v, d, to);
    return;
  }
  HWY_ALIGN float part[hn::MaxLanes(tag())];
  hn::Store(v, d, part);
  n = n < hn::MaxLanes(d) ? n : hn::MaxLanes(d);
  std::memcpy(to, part, n * sizeof(float));
}

/// Calls body(i, n) for whole vectors and then for the remaining values.
template <class Body>
HWY_INLINE void each_vector(std::size_t size, Body body) {
  const auto lanes = hn::Lanes(tag());
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes)
    body(i, lanes);
  if (i != size)
    body(i, size - i);
}

HWY_INLINE float sum_of(vec v) {
  return hn::GetLane(hn::SumOfLanes(tag(), v));
}

/// How a block of values is rounded: value = scale * code.
struct block_rounding {
  vec inverse; ///< the factor for the values; finite
  float scale; ///< NaN if a value is not finite
};

/// The scale at which the largest magnitude of `count` values becomes
/// `largest_code`. @pre `count` is a multiple of the lanes
HWY_INLINE block_rounding rounding_of(const float* x, std::size_t count,
                                      float largest_code) {
  const tag d;
  auto largest = hn::Zero(d);
  auto poison = hn::Zero(d); // NaN where a value is not finite
  for (std::size_t i = 0; i != count; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, x + i);
    largest = hn::Max(largest, hn::Abs(v));
    poison = hn::MulAdd(v, hn::Zero(d), poison);
  }
  const auto top = hn::GetLane(hn::MaxOfLanes(d, largest)) / largest_code;
  return {hn::Set(d, top >= 1e-30f ? 1.0f / top : 0.0f), top + sum_of(poison)};
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif // SHOAL_KERNELS_SIMD_INL
