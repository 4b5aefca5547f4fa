// runtime/openai/chat_request.hpp -- the body of POST /v1/chat/completions.
//
// As for completions (completion_request.hpp), and: messages are checked as far
// as any template needs them (objects with a role; contents that are texts, parts
// with texts, or null; tool calls with a name); other fields of a message are the
// template's. The role "developer" is "system", by its older name.
//
// Differences from the API: those of completions; chat_template_kwargs, documents,
// add_generation_prompt and continue_final_message are taken, as vLLM's server
// does; reasoning_effort is a variable of the template. With tool_choice "none"
// the template is shown no tools. Refused with an error that names the field:
// parts of messages that are no texts; chat_template. What the text of the answer must be: output_rule.hpp.
//
// Threads: any. Cost: linear in the body.
// Errors:  an api_error with status 400 and the name of the field.
// Source:  https://platform.openai.com/docs/api-reference/chat
#pragma once

#include "runtime/openai/generation_options.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shoal::openai {

struct chat_limits : request_limits {
  std::size_t messages_max = 4096;
  std::size_t parts_max = 4096; ///< of one message
  std::size_t tools_max = 512;
  std::size_t calls_max = 128; ///< of one message
};

/// A conversation for a template; also of /tokenize and /apply-template.
struct conversation {
  nlohmann::ordered_json messages;  ///< at least one
  nlohmann::ordered_json tools;     ///< null: none
  nlohmann::ordered_json documents; ///< null: none
  nlohmann::ordered_json variables; ///< an object; null: none
  bool add_generation_prompt = true;
  bool continue_final_message = false;
};

/// Calls of tools that the text must have, or that must keep to schemas.
struct wanted_calls {
  struct tool {
    std::string name;
    std::optional<std::string> schema; ///< as JSON; nothing: any object
    bool strict = false;
  };
  bool must = false;       ///< there is a call, and nothing else
  bool named = false;      ///< of one tool, and so one call
  std::vector<tool> tools; ///< that may be called
  /// Whether the text needs a rule.
  bool constrain = false;
};

struct chat_request : generation_options {
  static constexpr std::uint32_t logprobs_max = 20;

  conversation asked;
  bool tools_allowed = false; ///< there are tools, and they may be called
  wanted_calls calls;
};

[[nodiscard]] std::variant<chat_request, api_error>
parse_chat(std::string_view body, const chat_limits& limits = {});

/// A chat that came by another API.
struct other_api {
  std::span<const char* const>
    own; ///< fields that a chat must not have from it
  std::span<const field_name> names; ///< what it calls fields of a chat
};
/// Reads all fields of a chat that came by another API.
/// @param body    of the request
/// @param as_chat its own fields, as those of a chat
[[nodiscard]] std::variant<chat_request, api_error>
read_as_chat(nlohmann::ordered_json& body,
             const nlohmann::ordered_json& as_chat, const other_api& api,
             const chat_limits& limits);

class fields;
/// Reads all fields of a chat.
chat_request read_chat(fields& in, const chat_limits& limits);
/// Reads messages and what belongs to them.
conversation read_conversation(fields& in, const chat_limits& limits);

} // namespace shoal::openai
