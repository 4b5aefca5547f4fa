// runtime/core/random.hpp -- a small seeded generator for retries.
//
// Source: G. Steele, D. Lea, C. Flood, Fast Splittable Pseudorandom Number
// Generators, OOPSLA 2014 (SplitMix).
#pragma once

#include "runtime/core/ids.hpp"

#include <cstdint>
#include <limits>

namespace shoal::core::cluster {

inline constexpr nanoseconds time_max = std::numeric_limits<nanoseconds>::max();

class random {
public:
  explicit random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  /// A number in [0, bound). @pre bound > 0
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

private:
  std::uint64_t state_;
};

} // namespace shoal::core::cluster
