// runtime/model/decode/token_text.hpp -- the text of tokens as they are chosen.
//
// Text is released when it is complete and safe to print: it is held back while
// it could become a stop string or half a character.
//
// Threads: one. Cost: of a token, the held text times the stop strings.
#pragma once

#include "runtime/model/text/tokenizer.hpp"

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shoal::model {

/// Stop strings of one request, and the bytes of each.
inline constexpr std::size_t stop_strings_max = 16;
inline constexpr std::size_t stop_bytes_max = 256;

class token_text {
public:
  /// @param by may be null: then there is no text
  /// @param stop text ends before the first of these; none is empty
  /// @param least tokens whose text has no stop string, whatever it says
  token_text(const tokenizer* by, std::vector<std::string> stop,
             std::size_t least = 0);

  /// The text of a token that the decoder leaves out; "": it has none.
  using special_text = std::function<std::string(token_id)>;
  /// Such tokens have a text here. Before the first push().
  /// @param stops  stop strings are looked for in these texts, too; else no stop
  /// string has text from both sides of one
  void show(special_text special, bool stops) {
    special_ = std::move(special);
    stops_in_special_ = stops;
  }
  /// Takes the tokens before, on which the text of the first token may depend.
  /// @pre nothing was pushed
  void after(std::span<const token_id> prompt);
  /// Takes a token. @returns the text that can be printed now
  std::string push(token_id id);
  /// No token follows. @returns the text that was held back
  std::string finish();
  /// Whether a stop string has occurred: there is no more text.
  bool stopped() const noexcept { return stopped_; }
  /// That stop string; "" if none has.
  const std::string& stopped_by() const noexcept { return stopped_by_; }

private:
  std::string release(const std::string& piece, bool last);

  text_decoder text_;
  special_text special_; ///< may be empty
  bool stops_in_special_ = true;
  bool joins_prompt_; ///< texts of tokens depend on the tokens before
  std::vector<std::string> stop_;
  std::string held_;  ///< text that may be the start of a stop string
  std::size_t least_; ///< tokens to come before stop strings count
  bool stopped_ = false;
  std::string stopped_by_;
};

} // namespace shoal::model
