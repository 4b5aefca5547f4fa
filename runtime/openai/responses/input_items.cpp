// runtime/openai/responses/input_items.cpp -- one function for each kind of item.
#include "runtime/openai/responses/input_items.hpp"

#include <map>
#include <string>
#include <utility>

namespace shoal::openai {
namespace {

constexpr std::size_t instructions_bytes_max = 1 << 22;

class item_reader {
public:
  item_reader(fields& in, const chat_limits& limits)
    : in_(in), limits_(limits) {}

  json read() {
    std::string instructions;
    in_.text("instructions", instructions_bytes_max, instructions);
    if (!instructions.empty())
      messages_.push_back(
        {{"role", "system"}, {"content", std::move(instructions)}});
    const json* const text = in_.find("input");
    if (text && text->is_string())
      messages_.push_back({{"role", "user"}, {"content", *text}});
    else if (const json* const value =
               in_.filled_list("input", "a string or a list of items", "items",
                               limits_.messages_max))
      for (std::size_t i = 0; i < value->size() && in_.ok(); ++i)
        add((*value)[i], "input[" + std::to_string(i) + "]");
    return std::move(messages_);
  }

private:
  void add(const json& item, const std::string& where) {
    if (!item.is_object())
      return in_.not_a(where, item, "an object");
    std::string type = "message";
    if (const auto found = item.find("type"); found != item.end()) {
      if (!found->is_string())
        return in_.not_a(where + ".type", *found, "a string");
      type = found->get<std::string>();
    }
    if (type == "message")
      add_message(item, where);
    else if (type == "function_call")
      add_call(item, where);
    else if (type == "function_call_output")
      add_output(item, where);
    else if (type == "reasoning")
      add_reasoning(item, where);
    else if (type == "item_reference")
      in_.wrong(where + ".type",
                "is \"item_reference\", but no items are stored here: send the "
                "item itself",
                "unsupported_parameter");
    else
      in_.wrong(where + ".type", "is " + shown(json(type)) + ": not supported",
                "unsupported_parameter");
  }

  void add_message(const json& item, const std::string& where) {
    const std::string role = in_.text_in(item, "role", where);
    if (!in_.ok())
      return;
    if (role.size() > limits_.name_bytes_max)
      return in_.wrong(where + ".role", "is too long");
    json content = content_of(item, "content", where);
    if (!in_.ok())
      return;
    if (role == "assistant")
      begin_answer()["content"] = std::move(content);
    else
      messages_.push_back({{"role", role == "developer" ? "system" : role},
                           {"content", std::move(content)}});
  }

  void add_call(const json& item, const std::string& where) {
    const std::string name = in_.text_in(item, "name", where);
    const std::string id = in_.text_in(item, "call_id", where);
    std::string arguments = in_.text_in(item, "arguments", where);
    if (!in_.ok())
      return;
    const bool goes_on = !messages_.empty()
                         && messages_.back()["role"] == "assistant"
                         && thought_.empty();
    json& message = goes_on ? messages_.back() : begin_answer();
    json& calls = message["tool_calls"];
    if (calls.size() >= limits_.calls_max)
      return in_.wrong(where, "is more than "
                                + std::to_string(limits_.calls_max)
                                + " calls in one turn");
    calls.push_back(
      {{"id", id},
       {"type", "function"},
       {"function", {{"name", name}, {"arguments", std::move(arguments)}}}});
    names_[id] = name;
  }

  void add_output(const json& item, const std::string& where) {
    const std::string id = in_.text_in(item, "call_id", where);
    json output = content_of(item, "output", where);
    if (!in_.ok())
      return;
    json& message =
      messages_.emplace_back(json{{"role", "tool"}, {"tool_call_id", id}});
    if (const auto name = names_.find(id); name != names_.end())
      message["name"] = name->second;
    message["content"] = std::move(output);
  }

  void add_reasoning(const json& item, const std::string& where) {
    const auto content = item.find("content");
    if (content == item.end() || content->is_null())
      return; // a summary, or what only its maker can decrypt
    if (!content->is_array())
      return in_.not_a(where + ".content", *content, "a list of parts");
    for (std::size_t i = 0; i < content->size() && in_.ok(); ++i)
      thought_ +=
        part_text((*content)[i], where + ".content[" + std::to_string(i) + "]");
  }

  /// A message of the assistant, with the thoughts before it.
  json& begin_answer() {
    json& message =
      messages_.emplace_back(json{{"role", "assistant"}, {"content", ""}});
    if (!thought_.empty())
      message["reasoning_content"] = std::exchange(thought_, {});
    return message;
  }

  /// A text, or a list of parts of type "text".
  json
  content_of(const json& object, const char* name, const std::string& where) {
    const std::string place = where + "." + name;
    const auto found = object.find(name);
    if (found == object.end())
      in_.wrong(place, "is missing", "missing_required_parameter");
    else if (found->is_string())
      return *found;
    else if (!found->is_array())
      in_.not_a(place, *found, "a string or a list of parts");
    else if (found->size() > limits_.parts_max)
      in_.wrong(place, "has more than " + std::to_string(limits_.parts_max)
                         + " parts");
    json parts = json::array();
    for (std::size_t i = 0; in_.ok() && i < found->size(); ++i)
      parts.push_back(
        {{"type", "text"},
         {"text",
          part_text((*found)[i], place + "[" + std::to_string(i) + "]")}});
    return parts;
  }

  std::string part_text(const json& part, const std::string& place) {
    if (!part.is_object()) {
      in_.not_a(place, part, "an object");
      return {};
    }
    const std::string type = in_.text_in(part, "type", place);
    if (!in_.ok())
      return {};
    for (const char* known :
         {"input_text", "output_text", "text", "reasoning_text"})
      if (type == known)
        return in_.text_in(part, "text", place);
    if (type == "refusal")
      return in_.text_in(part, "refusal", place);
    in_.wrong(place + ".type",
              "is " + shown(json(type)) + ": only texts are supported",
              "unsupported_parameter");
    return {};
  }

  fields& in_;
  const chat_limits& limits_;
  json messages_ = json::array();
  std::string thought_;                      ///< before the next answer
  std::map<std::string, std::string> names_; ///< of functions, by their calls
};

} // namespace

json read_items(fields& in, const chat_limits& limits) {
  return item_reader(in, limits).read();
}

} // namespace shoal::openai
