// runtime/core/serving/known_texts.hpp -- what a pipeline has chosen for requests
// that their clients may send again.
//
// A client whose gateway dies, or whose connection breaks, sends its request to
// another gateway with the same Idempotency-Key. That gateway has no token of it,
// but the pipeline has: it goes on behind them instead of choosing them anew. They
// are what it would choose (rule R-1 of kernels/README.md), as the prompt and all
// that the choice depends on are compared, too.
//
// Kept of streams that are over, or whose gateway or client has gone; the oldest
// go first.
//
// Threads: none of its own.
#pragma once

#include "runtime/core/serving/serve_messages.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace shoal::core {

/// What a text depends on: with the same of all, the same tokens are chosen.
struct text_source {
  std::uint64_t key = 0; ///< of the request; 0: never asked for again
  sampling_wish how;     ///< compared first: it has the seed
  std::vector<token_id> prompt;
  std::vector<token_id> ends;
  std::optional<text_rule> rule;
  std::optional<token_filter> filter;
  friend bool operator==(const text_source&, const text_source&) = default;
};

class known_texts {
public:
  static constexpr std::size_t texts_max = 2048;
  /// Of all texts, with all that they depend on.
  static constexpr std::size_t bytes_max = std::size_t{8} << 20;

  /// @param chosen behind the prompt
  void keep(text_source of, std::vector<token_id> chosen) {
    if (of.key == 0 || chosen.empty() || chosen.size() <= find(of).size())
      return;
    const auto same = std::ranges::find(texts_, of, &text::of);
    if (same != texts_.end()) {
      bytes_ -= same->bytes;
      texts_.erase(same);
    }
    const std::size_t bytes = bytes_of(of) + chosen.size() * sizeof(token_id);
    if (bytes > bytes_max)
      return;
    bytes_ += bytes;
    texts_.push_back({std::move(of), std::move(chosen), bytes});
    while (bytes_ > bytes_max || texts_.size() > texts_max) {
      bytes_ -= texts_.front().bytes;
      texts_.pop_front();
    }
  }

  /// The longest that is known; empty: none.
  [[nodiscard]] std::span<const token_id> find(const text_source& of) const {
    std::span<const token_id> out;
    for (const text& t : texts_)
      if (of.key != 0 && t.chosen.size() > out.size() && t.of == of)
        out = t.chosen;
    return out;
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

private:
  struct text {
    text_source of;
    std::vector<token_id> chosen;
    std::size_t bytes = 0;
  };

  static std::size_t bytes_of(const text_source& s) {
    std::size_t tokens = s.prompt.size() + s.ends.size();
    std::size_t out = sizeof(text) + s.how.biases.size() * sizeof(token_bias);
    if (s.rule)
      out += s.rule->text.size();
    if (s.filter) {
      tokens += s.filter->allowed.size();
      for (const token_word& w : s.filter->banned) {
        tokens += w.tokens.size();
        out += sizeof w;
      }
    }
    return out + tokens * sizeof(token_id);
  }

  std::deque<text> texts_; ///< oldest first
  std::size_t bytes_ = 0;
};

} // namespace shoal::core
