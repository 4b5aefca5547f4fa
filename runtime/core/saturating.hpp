// runtime/core/saturating.hpp -- arithmetic on costs and sizes that cannot
// overflow.
//
// Units: those of the caller. Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace shoal::core {

/// Larger than any time or size that is compared; means "impossible".
inline constexpr std::uint64_t cost_never = ~std::uint64_t{0} / 4;

/// a * b / c; at most cost_never, which is also the result for c = 0.
[[nodiscard]] constexpr std::uint64_t
muldiv(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  if (c == 0)
    return cost_never;
  std::uint64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product))
    return std::min(product / c, cost_never);
  __extension__ using wide = unsigned __int128;
  const wide x = wide(a) * b / c;
  return x > cost_never ? cost_never : static_cast<std::uint64_t>(x);
}

/// a * b; at most cost_never.
[[nodiscard]] constexpr std::uint64_t
saturating_mul(std::uint64_t a, std::uint64_t b) {
  return muldiv(a, b, 1);
}

/// a + b; at most cost_never. @pre neither is more
[[nodiscard]] constexpr std::uint64_t
saturating_add(std::uint64_t a, std::uint64_t b) {
  return std::min(a + b, cost_never);
}

} // namespace shoal::core
