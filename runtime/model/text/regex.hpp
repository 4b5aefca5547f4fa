// runtime/model/text/regex.hpp -- the patterns of tokenizer.json.
//
// The files are written for Oniguruma (Ruby syntax); PCRE2 runs them. The two
// agree on what the known families use after a translation: \s, \w and \d are
// spelled out as Oniguruma has them, ^ and $ match at lines. Constructs whose
// meaning differs or that no known file uses (\b, \h, back references, {n}+,
// classes within classes, &&) are refused by name rather than guessed.
//
// Threads: a pattern is immutable, safe from several threads.
// Cost:    compiled to machine code where PCRE2 can. find() is one pass;
//          a pattern that backtracks pays for it up to regex_steps_max.
// Errors:  a failure names the pattern and what is wrong with it.
#pragma once

#include "runtime/model/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::model::text {

/// A longer pattern is refused; a search that takes more steps is given up.
inline constexpr std::size_t regex_bytes_max = 1u << 16;
inline constexpr std::uint32_t regex_steps_max = 50'000'000;
inline constexpr std::uint32_t regex_heap_kib_max = 64u << 10;

/// Bytes [first, last) of a text: a match, or what is between two.
struct text_part {
  std::size_t first = 0;
  std::size_t last = 0;
  bool match = false;
};

class regex {
public:
  static result<regex> compile(std::string_view pattern);
  /// Matches this text and nothing else.
  static result<regex> literal(std::string_view text);

  /// Appends the matches, and what lies between, in order, without a gap.
  /// Matches may be empty. Nothing is appended for an empty text.
  /// @pre text is UTF-8
  status find(std::string_view text, std::vector<text_part>& into) const;

  /// The pattern, or the text of a literal.
  const std::string& source() const { return source_; }
  bool is_literal() const { return code_ == nullptr; }

private:
  std::string source_;
  std::shared_ptr<const void> code_; ///< null: a literal
};

/// The same text with every match replaced by `content`.
status
replace_all(const regex& pattern, std::string_view content, std::string& text);

/// The translation that compile() makes; for tests.
result<std::string> to_pcre2(std::string_view pattern);

} // namespace shoal::model::text
