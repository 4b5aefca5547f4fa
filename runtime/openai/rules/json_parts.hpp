// runtime/openai/rules/json_parts.hpp -- what JSON consists of, as expressions.
//
// Private to runtime/openai/rules.
#pragma once

#include "runtime/core/grammar/expression.hpp"

#include <set>
#include <string>

namespace shoal::openai {

/// A character of a string: as it is, or escaped. Surrogates are not.
core::grammar::expression string_character();
core::grammar::expression quoted(core::grammar::expression inner);
core::grammar::expression any_string();
/// White space where it may be.
core::grammar::expression gap();

/// Characters of names beside which others are allowed: each makes an expression
/// within the one before.
inline constexpr std::size_t other_names_max = 100;

/// What is between the quotes of a string without escapes that is none of these.
/// Cost: linear in their characters.
core::grammar::expression no_string_of(const std::set<std::u32string>& names);

} // namespace shoal::openai
