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
  std::vector<token_id> prompt;
  std::vector<token_id> ends;
  sampling_wish how;
  std::optional<text_rule> rule;
  std::optional<token_filter> filter;
  friend bool operator==(const text_source&, const text_source&) = default;
};

class known_texts {
public:
  /// Of all texts, their prompts included: 1 MiB.
  static constexpr std::size_t tokens_max = std::size_t{1} << 18;

  /// @param chosen behind the prompt
  void keep(text_source of, std::vector<token_id> chosen) {
    const std::size_t size = of.prompt.size() + chosen.size();
    if (of.key == 0 || chosen.empty() || size > tokens_max)
      return;
    tokens_ += size;
    texts_.push_back({std::move(of), std::move(chosen)});
    while (tokens_ > tokens_max) {
      tokens_ -= texts_.front().size();
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

  [[nodiscard]] std::size_t tokens() const noexcept { return tokens_; }

private:
  struct text {
    text_source of;
    std::vector<token_id> chosen;
    [[nodiscard]] std::size_t size() const {
      return of.prompt.size() + chosen.size();
    }
  };
  std::deque<text> texts_; ///< oldest first
  std::size_t tokens_ = 0;
};

} // namespace shoal::core
