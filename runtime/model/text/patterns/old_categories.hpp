// runtime/model/text/patterns/old_categories.hpp -- categories of characters as
// Unicode 8 has them.
//
// The package `tokenizers` asks the crate unicode_categories 0.1 of 2016 where it
// does as BERT does. Models were trained with what it says, so newer characters
// must stay what they are there.
//
// Cost: a search in at most 270 ranges.
#pragma once

namespace shoal::model::text {

bool is_old_nonspacing_mark(char32_t code); ///< Mn
/// P, or one of ASCII's signs, which Unicode counts as symbols: $+<=>^`|~
bool is_old_punctuation(char32_t code);
bool is_old_control(char32_t code); ///< Cc without white space, Cf, Co

} // namespace shoal::model::text
