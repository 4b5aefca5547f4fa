// runtime/core/serving/pass_pace.hpp -- how many tokens of prompts a pass may have
// beside sequences that generate.
//
// A sequence that generates waits for the whole pass. So pieces of prompts take at
// most as much of a pass as is left up to its longest time, which is twice that of
// a pass in which sequences only generate: while a long prompt is read, the tokens
// of others come half as fast at worst. A pass without such sequences is as large
// as the batcher allows. Source of the idea: A. Agrawal et al., Taming
// Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve (OSDI 2024); the
// size is measured here instead of chosen.
//
// Threads: none of its own. Pure: the caller has the clock.
#pragma once

#include "runtime/core/ids.hpp"

#include <cstddef>
#include <cstdint>

namespace shoal::core {

class pass_pace {
public:
  /// As long as nothing is known.
  static constexpr std::size_t first_beside = 64;
  /// So that every prompt goes on.
  static constexpr std::size_t beside_min = 16;
  /// What prompts may add to a pass, of the time without them.
  static constexpr std::uint64_t added_percent = 75;
  /// Passes with this number of tokens of prompts tell what one costs.
  static constexpr std::size_t measured_min = 8;

  /// A pass is complete. With several passes under way its time is also that of
  /// those before it.
  /// @param generating sequences of it that generate
  /// @param of_prompts tokens of prompts
  void took(std::size_t generating, std::size_t of_prompts, nanoseconds time);

  [[nodiscard]] std::size_t beside() const noexcept;
  /// Tokens of prompts; 0: not known.
  [[nodiscard]] std::uint64_t prompts_per_s() const noexcept {
    return token_ == 0 ? 0 : 1'000'000'000 / token_;
  }

private:
  std::uint64_t alone_ = 0; ///< ns of a pass without prompts; 0: not known
  std::uint64_t token_ = 0; ///< ns of a prompt's token; 0: not known
};

} // namespace shoal::core
