// runtime/anthropic/message_blocks.hpp -- messages and their blocks as messages of a
// chat.
//
//   text         content
//   thinking     reasoning_content
//   tool_use     tool_calls
//   tool_result  a message of the role "tool"
//
// Errors: kept in the fields, with the place: "messages[2].content[0].type".
// Private to runtime/anthropic.
#pragma once

#include "runtime/openai/chat_request.hpp"
#include "runtime/openai/request_fields.hpp"

namespace shoal::anthropic {

using openai::json;

/// Reads `system` and `messages`. @returns a list of messages
json read_messages(openai::fields& in, const openai::chat_limits& limits);

} // namespace shoal::anthropic
