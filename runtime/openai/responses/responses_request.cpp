// runtime/openai/responses/responses_request.cpp -- makes a chat of the body, and
// reads that.
#include "runtime/openai/responses/responses_request.hpp"

#include "runtime/openai/request_fields.hpp"
#include "runtime/openai/responses/input_items.hpp"

#include <string>
#include <utility>

namespace shoal::openai {
namespace {

/// {"type": "function", "name": ...} as chats have it: {"type": "function",
/// "function": {"name": ...}}.
json function_of(const json& object) {
  json function = json::object();
  for (const char* name : {"name", "description", "parameters", "strict"})
    if (const auto found = object.find(name);
        found != object.end() && !found->is_null())
      function[name] = *found;
  return {{"type", "function"}, {"function", std::move(function)}};
}

json read_tools(fields& in, const chat_limits& limits) {
  return read_tools_of(
    in, limits.tools_max, "function", false,
    [](const json& tool, const std::string&) { return function_of(tool); });
}

json read_tool_choice(fields& in) {
  const json* const value = in.find("tool_choice");
  if (!value || !value->is_object())
    return value ? *value : json();
  if (value->value("type", json()) == "allowed_tools"
      && value->value("tools", json()).is_array()) {
    json allowed{{"mode", value->value("mode", json("auto"))},
                 {"tools", json::array()}};
    for (const json& tool : (*value)["tools"])
      allowed["tools"].push_back(tool.is_object() ? function_of(tool) : tool);
    return {{"type", "allowed_tools"}, {"allowed_tools", std::move(allowed)}};
  }
  if (value->value("type", json()) != "function" || !value->contains("name")
      || !(*value)["name"].is_string()) {
    in.wrong("tool_choice",
             "must be \"auto\", \"none\", \"required\" or a function",
             "unsupported_parameter");
    return nullptr;
  }
  return {{"type", "function"}, {"function", {{"name", (*value)["name"]}}}};
}

/// text.format as response_format.
json read_format(fields& in) {
  const json* const text = in.object("text");
  if (!text)
    return nullptr;
  const auto found = text->find("format");
  if (found == text->end() || found->is_null())
    return nullptr;
  if (!found->is_object()) {
    in.not_a("text.format", *found, "an object");
    return nullptr;
  }
  if (found->value("type", json()) != "json_schema")
    return *found;
  json schema = *found;
  schema.erase("type");
  return {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
}

json read_effort(fields& in) {
  const json* const value = in.object("reasoning");
  if (!value)
    return nullptr;
  return value->value("effort", json());
}

/// @returns whether the answer has the probabilities of its tokens
bool read_include(fields& in) {
  const json* const value = in.find("include");
  if (!value)
    return false;
  if (!value->is_array()) {
    in.not_a("include", *value, "a list of strings");
    return false;
  }
  bool out = false;
  for (const json& item : *value)
    if (item.is_string())
      out = out || item == "message.output_text.logprobs";
    else
      in.not_a("include", item, "a list of strings");
  return out;
}

void read_metadata(fields& in, const responses_limits& limits) {
  const json* const value = in.object("metadata");
  if (!value)
    return;
  if (value->size() > limits.metadata_max)
    return in.wrong("metadata", "has more than "
                                  + std::to_string(limits.metadata_max)
                                  + " entries");
  for (const json& item : *value)
    if (!item.is_string())
      return in.not_a("metadata", item, "an object of strings");
    else if (item.get_ref<const std::string&>().size()
             > limits.metadata_bytes_max)
      return in.wrong("metadata", "has a value of more than "
                                    + std::to_string(limits.metadata_bytes_max)
                                    + " bytes");
}

void refuse_unsupported_response(fields& in) {
  for (const char* name : {"previous_response_id", "conversation"})
    if (in.find(name))
      in.wrong(name,
               "is not supported, since nothing is stored here: send the "
               "whole conversation as input",
               "unsupported_parameter");
  if (in.find("prompt"))
    in.wrong("prompt", "is not supported: use instructions and input",
             "unsupported_parameter");
  bool background = false;
  in.flag("background", background);
  if (background)
    in.wrong("background", "is not supported: leave it out",
             "unsupported_parameter");
  std::string truncation;
  in.text("truncation", 64, truncation);
  if (!truncation.empty() && truncation != "disabled")
    in.wrong("truncation", "must be \"disabled\"", "unsupported_parameter");
  in.object("stream_options");
  bool ignored = false;
  in.flag("store", ignored);
  in.flag("parallel_tool_calls", ignored);
}

/// Fields of this API, and those of chats by which they are read: here they mean
/// nothing.
constexpr const char* own_names[] = {
  "input",     "instructions",    "text",
  "reasoning", "include",         "max_output_tokens",
  "metadata",  "stream_options",  "truncation",
  "messages",  "response_format", "reasoning_effort",
  "logprobs",  "top_logprobs",    "max_tokens",
  "tools",     "tool_choice",     "max_completion_tokens",
  "n"};

/// Of what an answer repeats; a stream's first event has it twice.
constexpr std::size_t repeated_bytes_max = std::size_t{1} << 20;

json repeated_of(const json& object) {
  json out = json::object();
  for (const char* name :
       {"instructions", "max_output_tokens", "metadata", "parallel_tool_calls",
        "reasoning", "temperature", "text", "tool_choice", "tools",
        "top_logprobs", "top_p"})
    if (const auto found = object.find(name);
        found != object.end() && !found->is_null())
      out[name] = *found;
  return out;
}

} // namespace

std::variant<responses_request, api_error>
parse_responses(std::string_view body, const responses_limits& limits) {
  auto parsed = parse_body(body, limits.values_max);
  if (auto* wrong = std::get_if<api_error>(&parsed))
    return std::move(*wrong);
  json& object = std::get<json>(parsed);
  fields in(object, limits.told);
  json more{{"messages", read_items(in, limits)},
            {"tools", read_tools(in, limits)},
            {"tool_choice", read_tool_choice(in)},
            {"response_format", read_format(in)},
            {"reasoning_effort", read_effort(in)}};
  std::int64_t number = 0;
  if (in.integer("max_output_tokens", 1, limits.tokens_max, number))
    more["max_tokens"] = number;
  const bool included = read_include(in);
  number = 0;
  in.integer("top_logprobs", 0, chat_request::logprobs_max, number);
  if (included || number > 0) {
    more["logprobs"] = true;
    more["top_logprobs"] = number;
  }
  read_metadata(in, limits);
  refuse_unsupported_response(in);
  if (!in.ok())
    return std::move(in.mistake());

  responses_request out;
  out.repeated = repeated_of(object);
  if (model::json_text(out.repeated).size() > repeated_bytes_max)
    return invalid_request("instructions and tools have more than "
                             + std::to_string(repeated_bytes_max)
                             + " bytes together: answers repeat them",
                           "instructions");
  auto chat =
    read_as_chat(object, more, {own_names, responses_request::names}, limits);
  if (auto* wrong = std::get_if<api_error>(&chat))
    return std::move(*wrong);
  static_cast<chat_request&>(out) = std::get<chat_request>(std::move(chat));
  return out;
}

} // namespace shoal::openai
