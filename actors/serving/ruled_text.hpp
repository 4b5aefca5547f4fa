// actors/serving/ruled_text.hpp -- the text of a sequence that has to keep to a rule,
// on the last stage, where its tokens are chosen.
//
//   made --find_allowed--> ready: masked(), add() --find_allowed--> ready ...
//
// Which tokens may come next is found between two passes, beside the device; with
// that, a choice costs no more than a copy of the logits.
//
// Threads: one at a time; find_allowed() always on context::masks(), since texts share
//          what they have found of their rule.
// Errors:  a text that cannot go on is `stuck`.
#pragma once

#include "runtime/core/grammar/token_masks.hpp"
#include "runtime/core/serving/serve_messages.hpp"

#include <memory>
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

  /// @param by null: the rule cannot be used, and the text is stuck
  /// @param chosen before, elsewhere
  /// @param ends tokens that may end the text where its rule may
  ruled_text(std::shared_ptr<core::grammar::token_masks> by,
             std::span<const core::token_id> chosen,
             std::vector<core::token_id> ends);

  /// Finds the tokens that may come next.
  void find_allowed();
  [[nodiscard]] state now() const noexcept { return state_; }
  /// Tokens so far.
  [[nodiscard]] std::size_t tokens() const noexcept { return tokens_; }

  /// The logits, with minus infinity for what may not come next.
  /// @pre find_allowed() was called after the last token, now() is goes_on
  void masked(std::span<const float> logits_V, std::vector<float>& out) const;
  /// Adds the token that was chosen.
  void add(core::token_id token);

private:
  std::shared_ptr<core::grammar::token_masks> by_;
  std::optional<core::grammar::constrained_text> text_;
  std::optional<core::grammar::token_set> allowed_;
  std::vector<core::token_id> ends_;
  std::size_t tokens_ = 0;
  state state_ = state::goes_on;
};

} // namespace shoal::actors
