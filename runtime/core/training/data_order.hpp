// runtime/core/training/data_order.hpp -- which sample belongs to which step.
//
// The corpus is cut into `windows` sequences of equal length. Sample `index` of
// step `step` of an island is a window number: a function of (seed, island,
// step, index) alone, whichever peer computes it, so no failure loses or repeats
// a sample. Each island has an order of its own. Each pass over the corpus (data epoch) visits every window exactly once, in an
// order of its own: a Feistel permutation of the next power of four, iterated
// until the result is in range, so nothing is stored.
//
// Cost: at most a few dozen multiplications for a sample.
//
// Source: J. Black, P. Rogaway: Ciphers with Arbitrary Finite Domains, CT-RSA
// 2002 (cycle walking).
#pragma once

#include <cstdint>

namespace shoal::core {

/// A permutation of [0, size) chosen by `key`.
/// @pre index < size, size < 2^62
[[nodiscard]] std::uint64_t
permute(std::uint64_t index, std::uint64_t size, std::uint64_t key) noexcept;

/// Windows in a text: each predicts seq_len tokens; no window predicts the
/// first token of a text.
[[nodiscard]] constexpr std::uint64_t
windows_in(std::uint64_t tokens, std::uint64_t seq_len) noexcept {
  return tokens == 0 ? 0 : (tokens - 1) / seq_len;
}

class data_order {
public:
  /// @pre windows > 0, samples_per_step > 0
  data_order(std::uint64_t seed, std::uint64_t windows,
             std::uint32_t samples_per_step, std::uint32_t island = 0);

  /// The window of sample `index` of `step`.
  /// @pre step >= 1 (the first step), index < samples_per_step
  [[nodiscard]] std::uint64_t
  sample(std::uint64_t step, std::uint32_t index) const;

  /// The pass over the corpus, from 0, that this sample belongs to.
  [[nodiscard]] std::uint64_t
  data_epoch(std::uint64_t step, std::uint32_t index) const;

  [[nodiscard]] std::uint64_t windows() const noexcept { return windows_; }
  [[nodiscard]] std::uint32_t samples_per_step() const noexcept {
    return samples_per_step_;
  }

private:
  [[nodiscard]] std::uint64_t
  position(std::uint64_t step, std::uint32_t index) const;

  std::uint64_t seed_;
  std::uint64_t windows_;
  std::uint32_t samples_per_step_;
};

} // namespace shoal::core
