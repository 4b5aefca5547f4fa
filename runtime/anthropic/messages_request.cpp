// runtime/anthropic/messages_request.cpp -- makes a chat of the body, and reads that.
#include "runtime/anthropic/messages_request.hpp"

#include "runtime/anthropic/message_blocks.hpp"

#include <utility>

namespace shoal::anthropic {
namespace {

using model::shown;
using openai::api_error;
using openai::chat_limits;
using openai::fields;

json read_tools(fields& in, const chat_limits& limits) {
  return openai::read_tools_of(
    in, limits.tools_max, "custom", true,
    [&](const json& tool, const std::string& place) -> json {
      const auto schema = tool.find("input_schema");
      if (schema == tool.end() || !schema->is_object()) {
        in.wrong(place + ".input_schema", "is missing or no object",
                 "invalid_type");
        return nullptr;
      }
      json function{{"name", tool["name"]}};
      if (tool.contains("description"))
        function["description"] = tool["description"];
      function["parameters"] = *schema;
      if (tool.contains("strict"))
        function["strict"] = tool["strict"];
      return {{"type", "function"}, {"function", std::move(function)}};
    });
}

json read_tool_choice(fields& in, json& into) {
  const json* const value = in.object("tool_choice");
  if (!value)
    return nullptr;
  const json alone = value->value("disable_parallel_tool_use", json());
  if (!alone.is_null() && !alone.is_boolean())
    in.not_a("tool_choice.disable_parallel_tool_use", alone, "true or false");
  into["parallel_tool_calls"] = alone != true;
  const json type = value->value("type", json());
  if (type == "auto" || type == "none")
    return type;
  if (type == "any")
    return "required";
  if (type == "tool" && value->contains("name") && (*value)["name"].is_string())
    return {{"type", "function"}, {"function", {{"name", (*value)["name"]}}}};
  in.wrong(
    "tool_choice",
    "must have the type \"auto\", \"any\", \"none\" or \"tool\", and with "
    "\"tool\" a name");
  return nullptr;
}

/// The template's variables, with enable_thinking as `thinking` says.
json read_variables(fields& in) {
  const json* const given = in.find("chat_template_kwargs");
  json out = given ? *given : json();
  const json* const value = in.object("thinking");
  if (!value)
    return out;
  const json type = value->value("type", json());
  if (type != "enabled" && type != "disabled" && type != "adaptive")
    in.wrong("thinking.type",
             "is " + shown(type)
               + ", must be \"enabled\", \"disabled\" or \"adaptive\"");
  if (out.is_null())
    out = json::object();
  if (out.is_object() && !out.contains("enable_thinking"))
    out["enable_thinking"] = type != "disabled";
  return out;
}

/// output_config.format as response_format, output_config.effort as
/// reasoning_effort.
void read_output(fields& in, json& into) {
  const json* const value = in.object("output_config");
  if (!value)
    return;
  if (const auto effort = value->find("effort"); effort != value->end())
    into["reasoning_effort"] = *effort;
  const auto format = value->find("format");
  if (format == value->end() || format->is_null())
    return;
  if (!format->is_object() || format->value("type", json()) != "json_schema"
      || !format->contains("schema"))
    return in.wrong("output_config.format",
                    "must be of type \"json_schema\" and have a schema");
  into["response_format"] = {
    {"type", "json_schema"},
    {"json_schema",
     {{"name", "answer"}, {"schema", (*format)["schema"]}, {"strict", true}}}};
}

json read_user(fields& in) {
  const json* const value = in.object("metadata");
  if (!value)
    return nullptr;
  return value->value("user_id", json());
}

json read_stops(fields& in) {
  const json* const value = in.find("stop_sequences");
  if (value && !value->is_array())
    in.not_a("stop_sequences", *value, "a list of strings");
  return value ? *value : json();
}

/// Whether the answer goes on with the last message.
bool continues(const json& messages) {
  return !messages.empty() && messages.back()["role"] == "assistant"
         && !messages.back().contains("tool_calls")
         && messages.back()["content"] != "";
}

/// Fields of this API, and those of chats by which they are read: here they mean
/// nothing.
constexpr const char* own_names[] = {"system",
                                     "stop_sequences",
                                     "thinking",
                                     "output_config",
                                     "metadata",
                                     "response_format",
                                     "stream_options",
                                     "reasoning_effort",
                                     "logprobs",
                                     "top_logprobs",
                                     "stop",
                                     "max_completion_tokens",
                                     "n",
                                     "user"};

std::variant<messages_request, api_error>
parse(std::string_view body, const chat_limits& limits, bool counts_only) {
  auto parsed = openai::parse_body(body, limits.values_max);
  if (auto* wrong = std::get_if<api_error>(&parsed))
    return std::move(*wrong);
  json& object = std::get<json>(parsed);
  fields in(object, limits.told);
  json more{{"messages", read_messages(in, limits)},
            {"tools", read_tools(in, limits)},
            {"stop", read_stops(in)},
            {"chat_template_kwargs", read_variables(in)},
            {"user", read_user(in)}};
  more["tool_choice"] = read_tool_choice(in, more);
  read_output(in, more);
  if (!counts_only && !in.find("max_tokens"))
    in.wrong("max_tokens", "is missing", "missing_required_parameter");
  if (!in.find("add_generation_prompt") && !in.find("continue_final_message")
      && continues(more["messages"])) {
    more["add_generation_prompt"] = false;
    more["continue_final_message"] = true;
  }
  if (!in.ok())
    return std::move(in.mistake());

  auto chat = openai::read_as_chat(
    object, more, {own_names, messages_request::names}, limits);
  if (auto* wrong = std::get_if<api_error>(&chat))
    return std::move(*wrong);
  messages_request out;
  static_cast<openai::chat_request&>(out) =
    std::get<openai::chat_request>(std::move(chat));
  return out;
}

} // namespace

std::variant<messages_request, api_error>
parse_messages(std::string_view body, const chat_limits& limits) {
  return parse(body, limits, false);
}

std::variant<messages_request, api_error>
parse_count_tokens(std::string_view body, const chat_limits& limits) {
  return parse(body, limits, true);
}

std::string count_json(std::size_t tokens) {
  return model::json_text(json{{"input_tokens", tokens}});
}

} // namespace shoal::anthropic
