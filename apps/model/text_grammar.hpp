// apps/model/text_grammar.hpp -- the grammar that options of generate name.
//
// Errors: the option, the file and what is wrong there.
#pragma once

#include "apps/common/commands.hpp"
#include "runtime/core/grammar/token_masks.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/text/tokenizer.hpp"

#include <memory>

namespace shoal::apps {

/// @param tokenizer may be null
/// @param vocabulary ids of the model
/// @returns null if the options name none
model::result<std::shared_ptr<core::grammar::token_masks>>
grammar_of(const generate_command& o, const model::tokenizer* tokenizer,
           std::size_t vocabulary);

} // namespace shoal::apps
