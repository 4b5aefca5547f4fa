// actors/serving/ruled_text.hpp -- the text of a sequence that has to keep to a rule,
// on the last stage, where its tokens are chosen.
//
//   made --find_allowed--> ready: masked(), add() --find_allowed--> ready ...
//
// Which tokens may come next is found while the device computes; with that, a choice
// costs no more than a copy of the logits. A token_filter forbids more of them, and
// needs nothing to be found.
//
// Threads: one at a time: the device's while it is ready(), else that of
//          find_allowed(), which is always context::masks(), since texts share what
//          they have found of their rule.
// Errors:  a text that cannot go on is `stuck`.
#pragma once

#include "runtime/core/grammar/token_masks.hpp"
#include "runtime/core/serving/serve_messages.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace shoal::actors {

class ruled_text {
public:
  enum class state {
    goes_on,
    complete, ///< nothing may be added
    stuck,    ///< no token can be added, and the text may not end
  };

  /// @param by the rule; null: the text may be anything
  /// @param chosen before, elsewhere
  /// @param ends tokens that may end the text where its rule may
  ruled_text(std::shared_ptr<core::grammar::token_masks> by,
             core::token_filter filter, std::span<const core::token_id> chosen,
             std::vector<core::token_id> ends);
  /// The text of a rule that cannot be used.
  explicit ruled_text(std::size_t chosen)
    : tokens_(chosen), state_(state::stuck) {}

  /// Finds the tokens that may come next, and makes it ready.
  void find_allowed();
  /// Whether find_allowed() was called after the last token.
  [[nodiscard]] bool ready() const noexcept {
    return ready_.load(std::memory_order_acquire);
  }
  [[nodiscard]] state now() const noexcept { return state_; }
  /// Whether find_allowed() may take long.
  [[nodiscard]] bool has_rule() const noexcept { return by_ != nullptr; }
  /// Tokens so far.
  [[nodiscard]] std::size_t tokens() const noexcept { return tokens_; }

  /// The logits, with minus infinity for what may not come next.
  /// @returns false: no token may; then it is stuck
  /// @pre ready(), now() is goes_on
  [[nodiscard]] bool
  masked(std::span<const float> logits_V, std::vector<float>& out);
  /// Adds the token that was chosen; it is not ready any more.
  void add(core::token_id token);

private:
  void take(core::token_id token);
  void
  apply_rule(std::span<const float> logits_V, std::vector<float>& out) const;
  void apply_filter(std::vector<float>& out) const;

  std::shared_ptr<core::grammar::token_masks> by_;
  core::token_filter filter_;
  std::optional<core::grammar::constrained_text> text_;
  std::optional<core::grammar::token_set> allowed_;
  std::vector<core::token_id> ends_;
  /// The last tokens, as many as banned words look at.
  std::vector<core::token_id> recent_;
  std::size_t tokens_ = 0;
  state state_ = state::goes_on;
  std::atomic<bool> ready_ = false;
};

} // namespace shoal::actors
