// runtime/core/text/shown.hpp -- foreign text made safe for a terminal or a
// log.
//
// A name from a file or from another peer may hold bytes that are not UTF-8,
// control sequences of a terminal, or marks that reverse the order of letters.
// All code that shows such text to a user, or takes it from the network, passes
// it through these functions first.
//
// Controls are the characters U+0000 to U+001F (C0), U+007F to U+009F (DEL and
// C1), the property Bidi_Control, and the separators U+2028 and U+2029, which
// some programs take for line ends.
//
// Errors: none. Cost: one pass.
// Source: the Unicode standard, chapters 3.9 and 23.1; UAX #9, table 3.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shoal::core {

/// What a text may hold in addition to printable characters.
enum class line_ends {
  none, ///< the text stands within a line
  kept, ///< the text has lines: '\n' and '\t' stay as they are
};

/// Whether the text is UTF-8 without controls: shown() would not change it.
[[nodiscard]] bool
is_shown(std::string_view text, line_ends ends = line_ends::none);

/// @returns the text made safe: a space for each control that `ends` does not
/// keep, U+FFFD for each maximal part that is not UTF-8.
[[nodiscard]] std::string
shown(std::string_view text, line_ends ends = line_ends::none);

/// The same, cut to at most `bytes_max` bytes at the end of a character.
[[nodiscard]] std::string shown(std::string_view text, std::size_t bytes_max,
                                line_ends ends = line_ends::none);

/// Writes each control that JSON allows unescaped (DEL, C1, bidi) as \uXXXX:
/// the same JSON, and safe to show.
/// @pre json is JSON in UTF-8, so that such characters occur only in strings
[[nodiscard]] std::string escape_controls(std::string json);

} // namespace shoal::core
