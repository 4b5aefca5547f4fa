// runtime/core/grammar/pattern_reader.hpp -- what GBNF and regular expressions
// share: characters one by one, numbers, escapes by number, repetitions.
//
// Errors: bad_pattern, thrown; parsers turn it into a failure.
// Private to runtime/core/grammar.
#pragma once

#include "runtime/core/grammar/expression.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::core::grammar {

struct bad_pattern {
  std::string why;
  std::size_t at = 0; ///< character
};

class pattern_reader {
public:
  /// @throws bad_pattern if it is too long or not UTF-8
  explicit pattern_reader(std::string_view text);

  bool at_end() const { return at_ == codes_.size(); }
  std::size_t at() const { return at_; }
  void go_back_to(std::size_t at) { at_ = at; }
  /// The next character; 0 at the end.
  char32_t peek(std::size_t ahead = 0) const {
    return at_ + ahead < codes_.size() ? codes_[at_ + ahead] : 0;
  }
  char32_t take(); ///< @throws bad_pattern at the end
  bool take_if(char32_t c);
  bool take_if(std::string_view ascii);
  void expect(char32_t c, const char* what);
  [[noreturn]] void fail(std::string why) const;

  /// A code point of `digits` hexadecimal digits.
  char32_t take_hex(int digits);
  std::optional<std::uint32_t> take_number();
  /// The repetition sign behind a part, if there is one. `{` without a number
  /// is none.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> take_repetition();

  /// Line of a character, from 1.
  std::size_t line_of(std::size_t at) const;

private:
  std::u32string codes_;
  std::size_t at_ = 0;
};

} // namespace shoal::core::grammar
