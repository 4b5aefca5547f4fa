// runtime/openai/tool_choice.hpp -- which tools an answer may call, or must. For this
// folder's sources.
//
//   "auto"      as the model likes; a function with `strict` gets what its schema says
//   "none"      the template is shown no tools
//   "required"  calls and nothing else
//   {"type": "function", "function": {"name": f}}    one call of f
//   {"type": "allowed_tools", "allowed_tools": {"mode": "auto" | "required",
//    "tools": [{"type": "function", "function": {"name": f}}, ...]}}   of these alone
//
// Errors: the first mistake, as an api_error with the field's name. Whether a schema can
//         be kept to is for rules/call_rule.hpp to say.
#pragma once

#include "runtime/openai/chat_request.hpp"
#include "runtime/openai/request_fields.hpp"

#include <optional>

namespace shoal::openai {

/// @param tools of the request, which have names
/// @returns nothing: tools may not be called
std::optional<wanted_calls> read_calls(fields& in, const json& tools);

} // namespace shoal::openai
