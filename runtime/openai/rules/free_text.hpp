// runtime/openai/rules/free_text.hpp -- text up to a mark, as rules of a grammar: a rule
// for each part of the mark that has been read (the automaton of Knuth, Morris and
// Pratt).
//
// Threads: any.
#pragma once

#include "runtime/core/grammar/expression.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace shoal::openai {

struct free_text {
  core::grammar::rule_id first = 0; ///< the rule of the whole
  /// The same, beginning with none of the characters that were excluded.
  core::grammar::expression start;
};

/// Adds rules for a text that ends with the first `mark`.
/// @param then   what follows the mark; nothing: the text ends with it
/// @param ends   whether the text may also end without the mark
/// @param no_start  characters that `start` does not begin with; all of ASCII
free_text text_up_to(core::grammar::rule_set& rules, std::string_view mark,
                     std::optional<core::grammar::rule_id> then, bool ends,
                     std::string_view no_start = {});

} // namespace shoal::openai
