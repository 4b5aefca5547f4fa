// runtime/openai/rules/rule_compiler.hpp -- what the text of an answer must be, compiled.
//
// Threads: any. Cost: linear in the grammar, which core/grammar/grammar.hpp bounds.
// Errors:  what is wrong with the text, and where in it.
#pragma once

#include "runtime/core/grammar/grammar.hpp"
#include "runtime/core/text_rule.hpp"

#include <string_view>

namespace shoal::openai {

core::text_rule rule_of(core::rule_kind kind, std::string_view text,
                        core::rule_thought thought = core::rule_thought::none);

model::result<core::grammar::grammar> compile_rule(const core::text_rule& rule);

} // namespace shoal::openai
