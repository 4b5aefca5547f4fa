// runtime/model/text/patterns/unicode.hpp -- properties of characters, normal forms.
//
// By utf8proc (Unicode 15 in Debian 12). \s and \w as the crate `regex` defines
// them, and lower case as Rust's char::to_lowercase; the package `tokenizers`
// uses both. Characters newer than Unicode 15 count as unassigned.
//
// Cost:   a text of ASCII only is its own normal form and is read only once. A
//         run of k combining marks in the wrong order costs k^2.
// Errors: a failure if utf8proc has no memory.
#pragma once

#include "runtime/core/result.hpp"

#include <string>
#include <string_view>

namespace shoal::model::text {

enum class normal_form { nfc, nfd, nfkc, nfkd };

/// @pre text is UTF-8
result<std::string> normalise(std::string_view text, normal_form form);
std::string lower_case(std::string_view text);
/// Without combining marks (general category M).
std::string without_marks(std::string_view text);

bool is_space(char32_t code);   ///< property White_Space
bool is_word(char32_t code);    ///< \w: letters, marks, digits, connectors
bool is_numeric(char32_t code); ///< general category N
bool is_decimal(char32_t code); ///< Nd
bool is_letter(char32_t code);  ///< L
bool is_cased(char32_t code);   ///< Lu, Ll, Lt
bool is_mark(char32_t code);    ///< M
/// Neither C nor Z, or a space: what Python's repr() writes as it is.
bool is_printable(char32_t code);

/// The end of the user-perceived character (extended grapheme cluster, UAX 29)
/// that begins at `first`. @pre first is such a begin, first < size
std::size_t grapheme_end(std::string_view text, std::size_t first);

/// Letter case of one character as one character.
char32_t to_upper(char32_t code);
char32_t to_title(char32_t code);

} // namespace shoal::model::text
