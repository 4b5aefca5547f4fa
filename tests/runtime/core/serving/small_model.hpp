// tests/runtime/core/serving/small_model.hpp -- a model that is a function of
// numbers, for simulations of serving.
#pragma once

#include "runtime/core/random.hpp"
#include "runtime/core/serving/replay.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace shoal::core {

struct small_model {
  static constexpr token_id vocabulary = 50;
  static constexpr token_id end_token = 7;

  std::size_t window = 0; ///< of some of its layers; 0: none has one
  bool repeats = false;   ///< often says again what came five tokens before

  /// What layers with a window make of a token, after what they have made of those
  /// before it in the window.
  static std::uint64_t
  value(token_id t, std::span<const std::uint64_t> before) {
    std::uint64_t h = std::uint64_t(t);
    for (const std::uint64_t b : before)
      h = cluster::random(h ^ b).next();
    return h;
  }

  /// The next token: any function of all tokens, the seed, and the last one's
  /// value.
  [[nodiscard]] token_id next(std::span<const token_id> all, std::uint64_t seed,
                              std::uint64_t last_value) const {
    std::uint64_t h = seed ^ last_value;
    for (const token_id t : all)
      h = cluster::random(h ^ std::uint64_t(t + 1)).next();
    if (repeats && all.size() >= 5 && h / vocabulary % 8 != 0)
      return all[all.size() - 5];
    return token_id(h % vocabulary);
  }

  /// The probability of a token of a prompt.
  [[nodiscard]] double
  score(std::span<const token_id> before, token_id t) const {
    return -double(next(before, std::uint64_t(t), 0));
  }

  /// The tokens of a stream on a peer that has nothing else to do.
  std::vector<token_id>
  undisturbed(const stream_ask& a, stream_end& end) const {
    std::vector<token_id> all = a.tokens, out;
    std::vector<std::uint64_t> values;
    end = stream_end::length;
    while (out.size() < a.tokens_max) {
      for (std::size_t i = values.size(); i < all.size(); ++i)
        values.push_back(window == 0
                           ? 0
                           : value(all[i], std::span(values).last(std::min(
                                             values.size(), window - 1))));
      out.push_back(next(all, a.how.seed, values.back()));
      all.push_back(out.back());
      if (std::ranges::find(a.ends, out.back()) != a.ends.end()) {
        end = stream_end::stop;
        break;
      }
    }
    return out;
  }
};

} // namespace shoal::core
