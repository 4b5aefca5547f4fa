// runtime/openai/responses/input_items.hpp -- items of a conversation as messages
// of a chat.
//
//   message               a message; the role "developer" is "system"
//   reasoning             reasoning_content of the message behind it
//   function_call         tool_calls of the assistant's message
//   function_call_output  a message of the role "tool"
//
// Errors: kept in the fields, with the place: "input[2].content[0].type".
// Private to runtime/openai/responses.
#pragma once

#include "runtime/openai/chat_request.hpp"
#include "runtime/openai/request_fields.hpp"

namespace shoal::openai {

/// Reads `input` and `instructions`. @returns a list of messages
json read_items(fields& in, const chat_limits& limits);

} // namespace shoal::openai
