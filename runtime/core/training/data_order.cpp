// runtime/core/training/data_order.cpp -- a keyed permutation of the windows.
#include "runtime/core/training/data_order.hpp"

#include "runtime/core/assert.hpp"

#include <bit>

namespace shoal::core {
namespace {

std::uint64_t mix(std::uint64_t z) noexcept { // splitmix64
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

constexpr int rounds = 6;

} // namespace

std::uint64_t
permute(std::uint64_t index, std::uint64_t size, std::uint64_t key) noexcept {
  SHOAL_ASSERT(index < size && size < (std::uint64_t{1} << 62));
  // Halves of `bits` each: the domain is below four times the size, so the
  // walk takes under four rounds on average.
  int bits = (std::bit_width(size - 1) + 1) / 2;
  if (bits == 0)
    return 0;
  std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  do {
    std::uint64_t left = index >> bits;
    std::uint64_t right = index & mask;
    for (int r = 0; r < rounds; ++r) {
      std::uint64_t next =
        left ^ (mix(mix(key + static_cast<std::uint64_t>(r)) ^ right) & mask);
      left = right;
      right = next;
    }
    index = left << bits | right;
  } while (index >= size);
  return index;
}

data_order::data_order(std::uint64_t seed, std::uint64_t windows,
                       std::uint32_t samples_per_step, std::uint32_t island)
  : seed_(island == 0 ? seed : mix(seed + mix(island))), windows_(windows),
    samples_per_step_(samples_per_step) {
  SHOAL_ASSERT(windows > 0 && samples_per_step > 0);
}

std::uint64_t
data_order::position(std::uint64_t step, std::uint32_t index) const {
  SHOAL_ASSERT(step >= 1 && index < samples_per_step_);
  return (step - 1) * samples_per_step_ + index;
}

std::uint64_t
data_order::sample(std::uint64_t step, std::uint32_t index) const {
  std::uint64_t at = position(step, index);
  return permute(at % windows_, windows_, mix(seed_ ^ mix(at / windows_)));
}

std::uint64_t
data_order::data_epoch(std::uint64_t step, std::uint32_t index) const {
  return position(step, index) / windows_;
}

} // namespace shoal::core
