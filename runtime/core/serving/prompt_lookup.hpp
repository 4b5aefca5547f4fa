// runtime/core/serving/prompt_lookup.hpp -- guesses at the next tokens of a
// sequence, from what it has said before.
//
// Where text repeats itself, what followed the last few tokens when they came
// before often follows again. A pass computes such guesses behind the last token,
// and those that are then chosen need no pass of their own.
//
// Threads: none of its own. Cost: a look-up is linear in the tokens.
// Source:  A. Saxena: Prompt Lookup Decoding (2023); Y. Leviathan et al.: Fast
//          Inference from Transformers via Speculative Decoding (ICML 2023).
#pragma once

#include "runtime/core/serving/pages.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::core {

namespace prompt_lookup {
/// Tokens at the end that must have come before, if there is such a place; else
/// fewer. One token alone is followed by too many others.
inline constexpr std::size_t match_max = 3;
inline constexpr std::size_t match_min = 2;
} // namespace prompt_lookup

/// The `most` tokens that followed the newest earlier occurrence of the last
/// tokens, and behind the last one again what followed there; nothing: there is
/// none.
[[nodiscard]] std::vector<token_id>
looked_up(std::span<const token_id> tokens, std::size_t most);

/// How many tokens of one sequence are worth guessing, by how it went before:
/// twice as many after guesses that were all right, else one more than were
/// right. After guesses that were all wrong there are none for a while, twice as
/// long each time.
class guess_pace {
public:
  static constexpr std::uint32_t pause_max = 64; ///< passes

  /// To be called for each pass of the sequence. @returns at most `limit`
  std::size_t next(std::size_t limit) {
    if (left_ > 0) {
      --left_;
      return 0;
    }
    return std::min(most_, limit);
  }
  void learn(std::size_t guessed, std::size_t right) {
    most_ = right == guessed ? 2 * guessed : right + 1;
    if (right > 0) {
      pause_ = 1;
      return;
    }
    left_ = pause_;
    pause_ = std::min(2 * pause_, pause_max);
  }

private:
  std::size_t most_ = 4;    ///< the first time: wrong ones cost little yet
  std::uint32_t pause_ = 1; ///< after guesses that are all wrong
  std::uint32_t left_ = 0;  ///< of the present pause
};

} // namespace shoal::core
