// runtime/model/decode/token_places.hpp -- where each token begins in a text.
//
// Units:   characters (code points) of the text as text_decoder gives it.
// Threads: one. Cost: that of decoding.
#pragma once

#include "runtime/model/text/tokenizer.hpp"

#include <cstddef>
#include <span>

namespace shoal::model {

class token_places {
public:
  /// @param by may be null: then no token has text
  /// @param at characters before the first token
  explicit token_places(const tokenizer* by, std::size_t at = 0);

  /// Takes the tokens before, on which the text of the first token may depend; they
  /// add no characters. @pre nothing was pushed
  void after(std::span<const token_id> prompt);
  /// Takes a token.
  /// @param told whether it is part of the text though it is a special token
  /// @returns the characters before it. A token that goes on with a character begins
  ///          where that one does
  std::size_t push(token_id id, bool told = false);
  /// The characters up to here.
  std::size_t count() const noexcept { return count_; }
  /// Whether the next token is the first one that has text.
  bool first() const noexcept { return first_; }

private:
  bool has_text(token_id id) const;

  const tokenizer* by_;
  text_decoder text_;
  std::size_t count_;
  bool first_ = true;
};

} // namespace shoal::model
