// runtime/openai/tool_choice.cpp -- one form after the other.
#include "runtime/openai/tool_choice.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace shoal::openai {
namespace {

constexpr char field[] = "tool_choice";

class choice_reader {
public:
  choice_reader(fields& in, const json& tools) : in_(in) {
    if (!tools.is_array())
      return;
    for (std::size_t i = 0; i < tools.size(); ++i)
      add(tools[i]["function"], "tools[" + std::to_string(i) + "].function");
  }

  std::optional<wanted_calls> read() {
    const json* const value = in_.find(field);
    if (value && *value == "none")
      return std::nullopt;
    if (value && *value != "auto")
      read_form(*value);
    out_.constrain =
      out_.must || limited_
      || std::ranges::any_of(out_.tools, &wanted_calls::tool::strict);
    return std::move(out_);
  }

private:
  void add(const json& function, const std::string& where) {
    wanted_calls::tool& t = out_.tools.emplace_back();
    t.name = function["name"].get<std::string>();
    const auto schema = function.find("parameters");
    if (schema != function.end() && !schema->is_null()) {
      if (!schema->is_object() && !schema->is_boolean())
        return in_.not_a(where + ".parameters", *schema, "a JSON schema");
      t.schema = model::json_text(*schema);
    }
    const auto strict = function.find("strict");
    if (strict == function.end() || strict->is_null())
      return;
    if (!strict->is_boolean())
      return in_.not_a(where + ".strict", *strict, "true or false");
    t.strict = strict->get<bool>();
  }

  void read_form(const json& value) {
    if (value.is_string()) {
      if (value != "required")
        return in_.wrong(field,
                         "is " + shown(value)
                           + ", must be \"auto\", \"none\", \"required\" or "
                             "an object");
      return force();
    }
    if (!value.is_object())
      return in_.not_a(field, value, "a string or an object");
    const json type = value.value("type", json());
    if (type == "function") {
      const std::string* const name = name_in(value);
      if (!name)
        return in_.wrong(std::string(field) + ".function.name",
                         "is missing or no string", "invalid_type");
      keep_only({*name});
      out_.named = true;
      return force();
    }
    if (type == "allowed_tools")
      return read_allowed(value.value("allowed_tools", json()));
    in_.wrong(std::string(field) + ".type",
              "is " + shown(type)
                + ": \"function\" and \"allowed_tools\" are supported",
              "unsupported_parameter");
  }

  void read_allowed(const json& allowed) {
    const std::string where = std::string(field) + ".allowed_tools";
    if (!allowed.is_object() || !allowed.contains("tools")
        || !allowed["tools"].is_array())
      return in_.wrong(where, "must be an object with a mode and tools",
                       "invalid_type");
    const json mode = allowed.value("mode", json("auto"));
    if (mode != "auto" && mode != "required")
      return in_.wrong(where + ".mode",
                       "is " + shown(mode)
                         + ", must be \"auto\" or \"required\"");
    std::vector<std::string> names;
    for (const json& tool : allowed["tools"]) {
      const std::string* const name = name_in(tool);
      if (!name)
        return in_.wrong(where + ".tools", "has a tool without a name",
                         "invalid_type");
      names.push_back(*name);
    }
    if (names.empty())
      return in_.wrong(where + ".tools", "is an empty list");
    limited_ = true;
    keep_only(names);
    if (mode == "required")
      force();
  }

  static const std::string* name_in(const json& tool) {
    const auto function = tool.is_object() ? tool.find("function") : tool.end();
    if (!tool.is_object() || function == tool.end() || !function->is_object())
      return nullptr;
    const auto name = function->find("name");
    return name == function->end() ? nullptr
                                   : name->get_ptr<const json::string_t*>();
  }

  void force() {
    if (in_.ok() && out_.tools.empty())
      in_.wrong(field, "forces a call, but there are no tools");
    out_.must = true;
  }

  void keep_only(const std::vector<std::string>& names) {
    for (const std::string& name : names)
      if (std::ranges::find(out_.tools, name, &wanted_calls::tool::name)
          == out_.tools.end())
        return in_.wrong(field, "names the function " + shown(json(name))
                                  + ", which is none of the tools");
    std::erase_if(out_.tools, [&](const wanted_calls::tool& t) {
      return std::ranges::find(names, t.name) == names.end();
    });
  }

  fields& in_;
  wanted_calls out_;
  bool limited_ = false; ///< to some of the tools
};

} // namespace

std::optional<wanted_calls> read_calls(fields& in, const json& tools) {
  if (!in.ok())
    return std::nullopt; // tools may be anything
  return choice_reader(in, tools).read();
}

} // namespace shoal::openai
