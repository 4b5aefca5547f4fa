// runtime/openai/responses/responses_request.hpp -- the body of POST /v1/responses.
//
// A chat by other names: `instructions` and `input` become messages,
// max_output_tokens is max_tokens, text.format is response_format, and
// reasoning.effort is reasoning_effort. Fields that the two APIs share, and those
// that chats take beside OpenAI's, are read as chats read them.
//
// Nothing is stored: `store` is taken and has no effect, and every request has the
// whole conversation. Refused with an error that names the field:
// previous_response_id, conversation, prompt, background, items that refer to
// stored ones, truncation "auto", tools but functions, contents that are no texts.
//
// Threads: any. Cost: linear in the body.
// Errors:  an api_error with status 400 and the name of the field.
// Source:  https://platform.openai.com/docs/api-reference/responses
#pragma once

#include "runtime/openai/answer_writer.hpp"
#include "runtime/openai/chat_request.hpp"

#include <nlohmann/json.hpp>

#include <memory>
#include <string_view>
#include <variant>

namespace shoal::openai {

struct responses_limits : chat_limits {
  std::size_t metadata_max = 16;        ///< entries
  std::size_t metadata_bytes_max = 512; ///< of one value
};

struct responses_request : chat_request {
  /// How the fields of a chat are called here.
  static constexpr field_name names[] = {
    {"messages", "input"},
    {"max_tokens", "max_output_tokens"},
    {"response_format", "text.format"},
    {"reasoning_effort", "reasoning.effort"},
  };
  /// Fields of the request that the answer repeats.
  nlohmann::ordered_json repeated;
};

[[nodiscard]] std::variant<responses_request, api_error>
parse_responses(std::string_view body, const responses_limits& limits = {});

std::unique_ptr<answer_writer> make_writer(const responses_request& asked);

} // namespace shoal::openai
