// runtime/anthropic/message_blocks.cpp -- one function for each role.
#include "runtime/anthropic/message_blocks.hpp"

#include <map>
#include <string>
#include <utility>

namespace shoal::anthropic {
namespace {

using model::shown;

json text_part(std::string text) {
  return {{"type", "text"}, {"text", std::move(text)}};
}

class message_reader {
public:
  message_reader(openai::fields& in, const openai::chat_limits& limits)
    : in_(in), limits_(limits) {}

  json read() {
    if (const json* const system = in_.find("system"))
      messages_.push_back(
        {{"role", "system"}, {"content", texts_of(*system, "system")}});
    if (const json* const value = in_.filled_list(
          "messages", "a list of messages", "messages", limits_.messages_max))
      for (std::size_t i = 0; i < value->size() && in_.ok(); ++i)
        add((*value)[i], "messages[" + std::to_string(i) + "]");
    return std::move(messages_);
  }

private:
  void add(const json& message, const std::string& where) {
    if (!message.is_object())
      return in_.not_a(where, message, "an object");
    const std::string role = in_.text_in(message, "role", where);
    if (!in_.ok())
      return;
    if (role != "user" && role != "assistant" && role != "system")
      return in_.wrong(where + ".role",
                       "is " + shown(json(role))
                         + ": must be \"user\" or \"assistant\"");
    const auto content = message.find("content");
    const std::string place = where + ".content";
    if (content == message.end())
      return in_.wrong(place, "is missing", "missing_required_parameter");
    if (content->is_string())
      return messages_.push_back({{"role", role}, {"content", *content}});
    if (!content->is_array())
      return in_.not_a(place, *content, "a string or a list of blocks");
    if (content->size() > limits_.parts_max)
      return in_.wrong(place, "has more than "
                                + std::to_string(limits_.parts_max)
                                + " blocks");
    if (role == "assistant")
      add_answer(*content, place);
    else
      add_question(role, *content, place);
  }

  /// Runs `take` with each block, its type and its place.
  template <class Take>
  void each_block(const json& blocks, const std::string& where, Take take) {
    for (std::size_t i = 0; i < blocks.size() && in_.ok(); ++i) {
      const std::string place = where + "[" + std::to_string(i) + "]";
      if (!blocks[i].is_object())
        return in_.not_a(place, blocks[i], "an object");
      const std::string type = in_.text_in(blocks[i], "type", place);
      if (in_.ok() && !take(blocks[i], type, place))
        in_.wrong(place + ".type",
                  "is " + shown(json(type)) + ": not supported here",
                  "unsupported_parameter");
    }
  }

  void add_question(const std::string& role, const json& blocks,
                    const std::string& where) {
    json parts = json::array();
    const auto flush = [&] {
      messages_.push_back(
        {{"role", role}, {"content", std::exchange(parts, json::array())}});
    };
    each_block(blocks, where,
               [&](const json& block, const std::string& type,
                   const std::string& place) {
                 if (type == "text")
                   parts.push_back(
                     text_part(in_.text_in(block, "text", place)));
                 else if (type == "tool_result") {
                   if (!parts.empty())
                     flush();
                   add_result(block, place);
                 } else
                   return false;
                 return true;
               });
    if (!parts.empty() || blocks.empty())
      flush();
  }

  void add_result(const json& block, const std::string& where) {
    const std::string id = in_.text_in(block, "tool_use_id", where);
    json message{{"role", "tool"}, {"tool_call_id", id}};
    if (const auto name = names_.find(id); name != names_.end())
      message["name"] = name->second;
    const auto content = block.find("content");
    message["content"] = content == block.end() || content->is_null()
                           ? json("")
                           : texts_of(*content, where + ".content");
    messages_.push_back(std::move(message));
  }

  void add_answer(const json& blocks, const std::string& where) {
    json parts = json::array(), calls = json::array();
    std::string thoughts;
    each_block(blocks, where,
               [&](const json& block, const std::string& type,
                   const std::string& place) {
                 if (type == "text")
                   parts.push_back(
                     text_part(in_.text_in(block, "text", place)));
                 else if (type == "thinking")
                   thoughts += in_.text_in(block, "thinking", place);
                 else if (type == "tool_use")
                   calls.push_back(call_of(block, place));
                 else
                   return type == "redacted_thinking";
                 return true;
               });
    if (calls.size() > limits_.calls_max)
      return in_.wrong(where, "has more than "
                                + std::to_string(limits_.calls_max) + " calls");
    json message{{"role", "assistant"},
                 {"content", parts.empty() ? json("") : std::move(parts)}};
    if (!thoughts.empty())
      message["reasoning_content"] = std::move(thoughts);
    if (!calls.empty())
      message["tool_calls"] = std::move(calls);
    messages_.push_back(std::move(message));
  }

  json call_of(const json& block, const std::string& where) {
    const std::string name = in_.text_in(block, "name", where);
    const std::string id = in_.text_in(block, "id", where);
    const auto input = block.find("input");
    if (input == block.end())
      in_.wrong(where + ".input", "is missing", "missing_required_parameter");
    else if (!input->is_object())
      in_.not_a(where + ".input", *input, "an object");
    if (!in_.ok())
      return nullptr;
    names_[id] = name;
    return {{"id", id},
            {"type", "function"},
            {"function", {{"name", name}, {"arguments", *input}}}};
  }

  /// A text, or a list of blocks that are texts.
  json texts_of(const json& value, const std::string& where) {
    if (value.is_string())
      return value;
    json parts = json::array();
    if (!value.is_array())
      in_.not_a(where, value, "a string or a list of blocks");
    else if (value.size() > limits_.parts_max)
      in_.wrong(where, "has more than " + std::to_string(limits_.parts_max)
                         + " blocks");
    else
      each_block(value, where,
                 [&](const json& block, const std::string& type,
                     const std::string& place) {
                   if (type == "text")
                     parts.push_back(
                       text_part(in_.text_in(block, "text", place)));
                   return type == "text";
                 });
    return parts;
  }

  openai::fields& in_;
  const openai::chat_limits& limits_;
  json messages_ = json::array();
  std::map<std::string, std::string> names_; ///< of tools, by their calls
};

} // namespace

json read_messages(openai::fields& in, const openai::chat_limits& limits) {
  return message_reader(in, limits).read();
}

} // namespace shoal::anthropic
