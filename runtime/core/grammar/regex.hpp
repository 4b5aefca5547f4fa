// runtime/core/grammar/regex.hpp -- regular expressions, the regular part of
// ECMA-262's.
//
// Characters, ".", classes, \d \w \s (ASCII) and their negations, escapes,
// groups, | and repetitions, lazy or not: that is the same here. ^ and $ only at
// the ends of a branch of the whole. Not: look-around, back references, \b, \p,
// possessive repetitions.
//
// Errors: the place and what is wrong there.
#pragma once

#include "runtime/core/grammar/expression.hpp"
#include "runtime/core/result.hpp"

#include <string_view>

namespace shoal::core::grammar {

enum class regex_use : std::uint8_t {
  whole_text,  ///< the text matches from its start to its end
  json_string, ///< the text between the quotes of a JSON string, whose value
               ///< has a match anywhere, as JSON Schema's `pattern` says
};

model::result<expression> parse_regex(std::string_view pattern, regex_use use);

/// A character of these ranges as it stands in a JSON string: as it is, or
/// escaped.
expression in_json_string(std::vector<code_range> ranges);

} // namespace shoal::core::grammar
