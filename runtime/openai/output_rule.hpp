// runtime/openai/output_rule.hpp -- the fields of a request that say what the text of
// an answer must be. For this folder's sources.
//
//   response_format     {"type": "text" | "json_object" | "json_schema", ...}: OpenAI;
//                       json_object with a `schema`: llama.cpp
//   guided_json, guided_regex, guided_choice, guided_grammar,
//   structured_outputs  {json, json_object, regex, choice, grammar}: vLLM
//   json_schema, grammar                                           : llama.cpp
//
// One of them at most. A schema is kept to whether `strict` says so or not. Grammars
// are GBNF.
//
// Errors: the first mistake, as an api_error with the field's name. Whether the rule
//         can be compiled is for rule_compiler.hpp to say.
#pragma once

#include "runtime/openai/request_fields.hpp"

namespace shoal::openai {

/// Texts of a choice.
inline constexpr std::size_t choice_texts_max = 4096;

void read_output_rule(fields& in, generation_options& into);

} // namespace shoal::openai
