// runtime/core/text/utf8.hpp -- characters of a text, one by one.
//
// Errors: none; what is not UTF-8 is reported (first_character) or replaced
//         by U+FFFD, one for each maximal broken part.
// Source: the Unicode standard, chapter 3.9, tables 3-7 and 3-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shoal::core {

inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// The first character of a text.
struct character {
  std::size_t bytes = 0; ///< of the character, or of its valid prefix
  enum class kind { whole, broken, cut_off } is = kind::whole;
};

/// @pre the text is not empty
character first_character(std::string_view text);

bool is_utf8(std::string_view text);

/// @returns the text with every part that is not UTF-8 replaced.
std::string replace_broken(std::string_view text);

/// Takes the character at offset `at` and advances `at`. @pre text is UTF-8, at
/// < size
char32_t next_code(std::string_view text, std::size_t& at);

/// Takes the character that ends before offset `at` and moves `at` back.
/// @pre text is UTF-8, 0 < at <= size
char32_t previous_code(std::string_view text, std::size_t& at);

/// @pre code is a Unicode scalar value
void append_code(std::string& text, char32_t code);

} // namespace shoal::core
