// runtime/openai/chat_request.cpp -- messages, tools, and the options.
#include "runtime/openai/chat_request.hpp"

#include "runtime/openai/request_fields.hpp"
#include "runtime/openai/tool_choice.hpp"

#include <string>

namespace shoal::openai {
namespace {

/// Reads the messages; keeps the first mistake with its place.
class message_reader {
public:
  message_reader(fields& in, const chat_limits& limits)
    : in_(in), limits_(limits) {}

  json read() {
    const json* const value = in_.filled_list("messages", "a list of messages",
                                              "messages", limits_.messages_max);
    if (!value)
      return {};
    json out = *value;
    for (std::size_t i = 0; i < out.size() && in_.ok(); ++i)
      check(out[i], "messages[" + std::to_string(i) + "]");
    return out;
  }

private:
  void check(json& message, const std::string& where) {
    if (!message.is_object())
      return in_.not_a(where, message, "an object");
    const auto role = message.find("role");
    if (role == message.end())
      return in_.wrong(where + ".role", "is missing",
                       "missing_required_parameter");
    if (!role->is_string())
      return in_.not_a(where + ".role", *role, "a string");
    if (role->get_ref<const std::string&>().size() > limits_.name_bytes_max)
      return in_.wrong(where + ".role", "is too long");
    if (*role == "developer")
      *role = "system";
    if (const auto at = message.find("content"); at != message.end())
      check_content(*at, where + ".content");
    if (const auto at = message.find("tool_calls");
        in_.ok() && at != message.end() && !at->is_null())
      check_calls(*at, where + ".tool_calls");
  }

  void check_content(json& content, const std::string& where) {
    if (content.is_null() || content.is_string())
      return;
    if (!content.is_array())
      return in_.not_a(where, content, "a string or a list of parts");
    if (content.size() > limits_.parts_max)
      return in_.wrong(where, "has more than "
                                + std::to_string(limits_.parts_max) + " parts");
    for (std::size_t i = 0; i < content.size(); ++i) {
      json& part = content[i];
      const std::string place = where + "[" + std::to_string(i) + "]";
      if (part.is_string()) {
        part = {{"type", "text"}, {"text", part}};
        continue;
      }
      if (!part.is_object())
        return in_.not_a(place, part, "an object");
      const auto type = part.find("type");
      if (type == part.end() || !type->is_string())
        return in_.wrong(place + ".type", "is missing or no string",
                         "invalid_type");
      if (*type != "text")
        return in_.wrong(place + ".type",
                         "is " + shown(*type)
                           + ": only parts of type \"text\" are supported",
                         "unsupported_parameter");
      const auto text = part.find("text");
      if (text == part.end() || !text->is_string())
        return in_.wrong(place + ".text", "is missing or no string",
                         "invalid_type");
    }
  }

  void check_calls(const json& calls, const std::string& where) {
    if (!calls.is_array())
      return in_.not_a(where, calls, "a list");
    if (calls.size() > limits_.calls_max)
      return in_.wrong(where, "has more than "
                                + std::to_string(limits_.calls_max) + " calls");
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::string place = where + "[" + std::to_string(i) + "].function";
      const auto function =
        calls[i].is_object() ? calls[i].find("function") : calls[i].end();
      if (!calls[i].is_object() || function == calls[i].end()
          || !function->is_object())
        return in_.wrong(place, "is missing or no object", "invalid_type");
      if (!function->contains("name") || !(*function)["name"].is_string())
        return in_.wrong(place + ".name", "is missing or no string",
                         "invalid_type");
      const auto arguments = function->find("arguments");
      if (arguments != function->end() && !arguments->is_string()
          && !arguments->is_object() && !arguments->is_null())
        return in_.not_a(place + ".arguments", *arguments,
                         "a string that holds JSON");
    }
  }

  fields& in_;
  const chat_limits& limits_;
};

json read_tools(fields& in, const chat_limits& limits) {
  const json* const value = in.find("tools");
  if (!value)
    return nullptr;
  if (!value->is_array()) {
    in.not_a("tools", *value, "a list of tools");
    return nullptr;
  }
  if (value->size() > limits.tools_max)
    in.wrong("tools",
             "has more than " + std::to_string(limits.tools_max) + " tools");
  for (std::size_t i = 0; i < value->size() && in.ok(); ++i) {
    const json& tool = (*value)[i];
    const std::string place = "tools[" + std::to_string(i) + "]";
    if (!tool.is_object() || tool.value("type", json()) != "function"
        || !tool.contains("function") || !tool["function"].is_object())
      in.wrong(place, "must be an object of type \"function\" with a function",
               "invalid_type");
    else if (!tool["function"].contains("name")
             || !tool["function"]["name"].is_string())
      in.wrong(place + ".function.name", "is missing or no string",
               "invalid_type");
  }
  return value->empty() ? json() : *value;
}

void refuse_unsupported_chat(fields& in) {
  if (in.find("chat_template"))
    in.wrong("chat_template",
             "is not taken from clients: the model's own is used",
             "unsupported_parameter");
}

void read_logprobs(fields& in, chat_request& into) {
  bool wanted = false;
  in.flag("logprobs", wanted);
  if (wanted)
    into.logprobs = 0;
  std::int64_t top = 0;
  if (!in.integer("top_logprobs", 0, chat_request::logprobs_max, top))
    return;
  if (!wanted && top > 0)
    return in.wrong("top_logprobs", "is only allowed if logprobs is true");
  if (wanted)
    into.logprobs = static_cast<std::uint32_t>(top);
}

} // namespace

conversation read_conversation(fields& in, const chat_limits& limits) {
  conversation out;
  out.messages = message_reader(in, limits).read();
  out.tools = read_tools(in, limits);
  if (const json* const value = in.find("documents")) {
    if (!value->is_array())
      in.not_a("documents", *value, "a list of objects");
    out.documents = *value;
  }
  out.variables = json::object();
  if (const json* const value = in.object("chat_template_kwargs"))
    out.variables = *value;
  std::string effort;
  in.text("reasoning_effort", limits.name_bytes_max, effort);
  if (!effort.empty())
    out.variables["reasoning_effort"] = effort;
  const bool asked = in.find("add_generation_prompt") != nullptr;
  in.flag("add_generation_prompt", out.add_generation_prompt);
  in.flag("continue_final_message", out.continue_final_message);
  if (asked && out.add_generation_prompt && out.continue_final_message)
    in.wrong("continue_final_message",
             "cannot be true together with add_generation_prompt");
  return out;
}

chat_request read_chat(fields& in, const chat_limits& limits) {
  chat_request out;
  out.asked = read_conversation(in, limits);
  read_options(in, limits, out);
  out.max_tokens_given =
    in.find("max_completion_tokens") || in.find("max_tokens");
  in.integer("max_tokens", 1, limits.tokens_max, out.max_tokens);
  in.integer("max_completion_tokens", 1, limits.tokens_max, out.max_tokens);
  read_logprobs(in, out);
  if (auto calls = read_calls(in, out.asked.tools))
    out.calls = *std::move(calls);
  else
    out.asked.tools = nullptr;
  out.tools_allowed = !out.asked.tools.is_null();
  if (out.calls.must && out.rule)
    in.wrong("tool_choice",
             "cannot force a call together with " + out.rule_field);
  refuse_unsupported_chat(in);
  return out;
}

std::variant<chat_request, api_error>
read_as_chat(json& body, const json& as_chat, const other_api& api,
             const chat_limits& limits) {
  for (const char* name : api.own)
    body.erase(name);
  body.update(as_chat);
  if (limits.told)
    limits.told->hide(api.own);
  fields in(body, limits.told);
  chat_request out = read_chat(in, limits);
  if (in.ok())
    return out;
  rename_fields(in.mistake(), api.names);
  return std::move(in.mistake());
}

std::variant<chat_request, api_error>
parse_chat(std::string_view body, const chat_limits& limits) {
  const auto object = parse_body(body, limits.values_max);
  if (const auto* wrong = std::get_if<api_error>(&object))
    return *wrong;
  fields in(std::get<json>(object), limits.told);
  chat_request out = read_chat(in, limits);
  if (!in.ok())
    return std::move(in.mistake());
  return out;
}

} // namespace shoal::openai
