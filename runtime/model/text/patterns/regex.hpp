// runtime/model/text/patterns/regex.hpp -- the patterns of tokenizer.json.
//
// The files are written for Oniguruma (Ruby syntax); PCRE2 runs them. The two
// agree on the constructs of known families after a translation: \s, \w and \d
// are spelled out as Oniguruma defines them, ^ and $ match at lines. Constructs
// whose meaning differs or that no known file uses (\b, \h, back references,
// {n}+, classes within classes, &&) are refused by name rather than guessed.
//
// Threads: a pattern is immutable, safe from several threads.
// Cost:    compiled to machine code where PCRE2 can. find() is one pass;
//          a pattern that backtracks pays for it up to regex_steps_max.
// Errors:  a failure names the pattern and the error.
#pragma once

#include "runtime/core/result.hpp"

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

/// Bytes [first, last) of a text: a match, or the text between two.
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

  /// Appends the matches, and the text between them, in order, without a gap.
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

/// Longer texts are refused, both from callers and from steps.
inline constexpr std::size_t text_bytes_max = 1u << 30;

/// Bytes that all steps of a tokenizer.json together may make of a text: 32
/// times its own and 4 KiB. Families stay far below: NFKC makes 33 bytes of the
/// 3 of U+FDFA, ByteLevel 4 of 2, a mark for a space 3 of 1, and a prefix of a
/// text has a few. A file of a few lines can ask for more: ten steps that
/// replace "a" by "aaaaaaaa" make 1 GiB of one letter.
constexpr std::size_t grown_bytes_max(std::size_t bytes) noexcept {
  constexpr std::size_t added_bytes = 4096;
  constexpr std::size_t factor = 32;
  return bytes > (text_bytes_max - added_bytes) / factor
           ? text_bytes_max
           : bytes * factor + added_bytes;
}

/// The failure of a step that would make more bytes than that of a text.
failure grows_too_much(std::string_view step, std::size_t bytes_max);

/// The same text with every match replaced by `content`. A result of more than
/// `bytes_max` bytes is a failure: it is not built, and the text stays
/// unchanged.
/// @param cut_left  becomes true if the package no longer counts the new text as
///        the begin of the old one: what took the place of a first match begins
///        where the last character of that match did
status
replace_all(const regex& pattern, std::string_view content,
            std::size_t bytes_max, std::string& text, bool* cut_left = nullptr);

/// The translation that compile() makes; for tests.
result<std::string> to_pcre2(std::string_view pattern);

} // namespace shoal::model::text
