// runtime/anthropic/messages_request.hpp -- the bodies of POST /v1/messages and
// /v1/messages/count_tokens.
//
// A chat by other names: `system` and the blocks of messages become its messages,
// stop_sequences is stop, input_schema is parameters, output_config.format is
// response_format. `thinking` sets the template's variable enable_thinking; its
// budget has no effect. A last message of the assistant is continued. Fields that
// chats take beside OpenAI's (min_p, seed, chat_template_kwargs, ...) are read as
// chats read them.
//
// Refused with an error that names the field: blocks that are no texts, thoughts,
// calls or results; tools that the server would run.
//
// Threads: any. Cost: linear in the body.
// Errors:  an api_error with status 400 and the name of the field.
// Source:  https://docs.anthropic.com/en/api/messages
#pragma once

#include "runtime/openai/answer_writer.hpp"
#include "runtime/openai/chat_request.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace shoal::anthropic {

struct messages_request : openai::chat_request {
  /// How the fields of a chat are called here.
  static constexpr openai::field_name names[] = {
    {"stop", "stop_sequences"},
    {"response_format", "output_config.format"},
    {"reasoning_effort", "output_config.effort"},
    {"user", "metadata.user_id"},
  };
};

[[nodiscard]] std::variant<messages_request, openai::api_error>
parse_messages(std::string_view body, const openai::chat_limits& limits = {});

/// The same, but max_tokens may be left out.
[[nodiscard]] std::variant<messages_request, openai::api_error>
parse_count_tokens(std::string_view body,
                   const openai::chat_limits& limits = {});

/// The answer of /v1/messages/count_tokens.
std::string count_json(std::size_t tokens);

std::unique_ptr<openai::answer_writer>
make_writer(const messages_request& asked);

} // namespace shoal::anthropic
