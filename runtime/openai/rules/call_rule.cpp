// runtime/openai/rules/call_rule.cpp -- one form of calls after the other.
#include "runtime/openai/rules/call_rule.hpp"

#include "runtime/files/json.hpp"
#include "runtime/openai/rules/free_text.hpp"
#include "runtime/openai/rules/json_schema.hpp"
#include "runtime/openai/rules/schema_keywords.hpp"

#include <utility>

namespace shoal::openai {

namespace g = core::grammar;
using json = nlohmann::ordered_json;

std::string mark_bytes(std::string_view mark) {
  return '\xff' + std::string(mark);
}

g::expression mark_of(std::string_view mark) {
  return g::choice(
    {g::literal(std::string(mark)), g::literal(mark_bytes(mark))});
}

std::string text_of(const call_rule& rule) {
  json tools = json::array();
  for (const call_rule::tool& t : rule.tools)
    tools.push_back({{"name", t.name},
                     {"schema", t.schema ? json(*t.schema) : json(nullptr)}});
  return model::json_text(json{{"form", int(rule.form)},
                               {"must", rule.must},
                               {"many", rule.many},
                               {"tools", std::move(tools)}});
}

namespace {

/// @returns nothing if it is none: then a peer made it, or another version
std::optional<call_rule> rule_from(std::string_view text) try {
  const auto object = model::parse_json<json>(text);
  if (!object.is_object())
    return std::nullopt;
  call_rule out;
  const auto& form = object.at("form");
  if (!form.is_number_integer() || form < int(call_form::hermes)
      || form > int(call_form::mistral_named))
    return std::nullopt;
  out.form = static_cast<call_form>(form.get<int>());
  out.must = object.at("must").get<bool>();
  out.many = object.at("many").get<bool>();
  const auto& tools = object.at("tools");
  if (!tools.is_array() || tools.empty())
    return std::nullopt;
  for (const json& t : tools) {
    call_rule::tool& to = out.tools.emplace_back();
    to.name = t.at("name").get<std::string>();
    if (const auto& schema = t.at("schema"); !schema.is_null())
      to.schema = schema.get<std::string>();
  }
  return out;
} catch (const json::exception&) {
  return std::nullopt;
}

/// A schema of a tool's parameters says "object", or nothing of a type.
model::result<g::rule_set>
arguments_of(const call_rule::tool& tool, schema_work& work) {
  if (!tool.schema)
    return json_object_rules();
  auto schema = model::parse_json<json>(*tool.schema);
  if (schema.is_object() && !schema.contains("type")) {
    bool says = false;
    for (const char* key : {"$ref", "anyOf", "oneOf", "allOf", "enum", "const"})
      says = says || schema.contains(key);
    if (!says)
      schema["type"] = "object";
  }
  if (schema.is_object() && schema.contains("type")
      && schema["type"] != "object")
    return model::failure{"type: must be \"object\""};
  return json_schema_rules(model::json_text(schema), work);
}

/// Adds the rules of another grammar. @returns its first one
g::rule_id embed(g::rule_set& into, g::rule_set part) {
  const auto base = static_cast<g::rule_id>(into.names.size());
  const auto shift = [&](auto& self, g::expression& e) -> void {
    if (e.is == g::expression::kind::rule)
      e.rule += base;
    for (g::expression& inner : e.parts)
      self(self, inner);
  };
  for (std::size_t i = 0; i != part.bodies.size(); ++i) {
    shift(shift, part.bodies[i]);
    into.add(std::move(part.names[i]), std::move(part.bodies[i]));
  }
  return base;
}

g::expression maybe(const char* text) {
  return g::optional(g::literal(text));
}

g::expression spaces() {
  return g::repetition(
    g::characters(
      {{U' ', U' '}, {U'\t', U'\t'}, {U'\r', U'\r'}, {U'\n', U'\n'}}),
    0);
}

class call_writer {
public:
  explicit call_writer(const call_rule& rule) : rule_(rule) {}

  model::result<g::rule_set> write() {
    out_.add("the answer");
    schema_work work;
    for (const call_rule::tool& t : rule_.tools) {
      auto arguments = arguments_of(t, work);
      if (!arguments)
        return model::failure{"the parameters of \"" + t.name
                              + "\": " + arguments.message()};
      arguments_.push_back(embed(out_, *std::move(arguments)));
      if (named() && t.name.find_first_of(" \t\r\n[]{}\"") != t.name.npos)
        return model::failure{"the name \"" + t.name
                              + "\" cannot be written in the model's form"};
    }
    out_.bodies.front() = rule_.must ? calls() : text_with_calls();
    return std::move(out_);
  }

private:
  bool named() const { return rule_.form == call_form::mistral_named; }

  /// A call of any of the tools, as an object or as a name with its arguments.
  g::expression call() const {
    const std::string key =
      rule_.form == call_form::llama ? "parameters" : "arguments";
    std::vector<g::expression> ways;
    for (std::size_t i = 0; i != rule_.tools.size(); ++i) {
      const std::string& name = rule_.tools[i].name;
      const g::expression arguments = g::of_rule(arguments_[i]);
      if (named())
        ways.push_back(
          g::sequence({g::literal(name), mark_of("[ARGS]"), arguments}));
      else
        ways.push_back(
          g::sequence({g::literal("{\"name\": " + model::json_text(json(name))
                                  + ", \"" + key + "\": "),
                       arguments, g::literal("}")}));
    }
    return g::choice(std::move(ways));
  }

  /// What stands behind the mark with which calls begin, up to the next mark.
  g::expression behind_mark() {
    switch (rule_.form) {
    case call_form::hermes:
      return g::sequence({maybe("\n"), call(), maybe("\n"), //
                          mark_of("</tool_call>")});
    case call_form::mistral_named:
      return call();
    case call_form::mistral_list:
      return g::sequence({g::literal("["), separated(", "), g::literal("]")});
    default:
      return separated("; ");
    }
  }

  g::expression separated(const char* by) {
    const g::rule_id one = out_.add("a call", call());
    if (!rule_.many)
      return g::of_rule(one);
    return g::sequence(
      {g::of_rule(one),
       g::repetition(g::sequence({g::literal(by), g::of_rule(one)}), 0)});
  }

  const char* mark() const {
    switch (rule_.form) {
    case call_form::hermes:
      return "<tool_call>";
    case call_form::mistral_list:
    case call_form::mistral_named:
      return "[TOOL_CALLS]";
    default:
      return "<|python_tag|>";
    }
  }

  g::expression calls() {
    if (rule_.form == call_form::llama)
      return g::sequence({g::optional(mark_of(mark())), behind_mark()});
    const g::rule_id one =
      out_.add("a call", g::sequence({mark_of(mark()), behind_mark()}));
    // A list has them all.
    if (!rule_.many || rule_.form == call_form::mistral_list)
      return g::of_rule(one);
    return g::sequence(
      {g::of_rule(one),
       g::repetition(g::sequence({maybe("\n"), g::of_rule(one)}), 0)});
  }

  g::expression text_with_calls() {
    const g::rule_id behind = out_.add("a call");
    g::expression body = behind_mark();
    const bool llama = rule_.form == call_form::llama;
    const free_text text =
      text_up_to(out_, mark(), behind, true, llama ? "{ \t\r\n" : "");
    if (llama) {
      const g::rule_id of_calls = out_.add("calls", body);
      out_.bodies[behind] = g::sequence({spaces(), g::of_rule(of_calls)});
      return g::sequence(
        {spaces(), g::choice({text.start, g::of_rule(of_calls)})});
    }
    // What follows a call is text again; the only one ends the answer.
    out_.bodies[behind] = g::sequence(
      {std::move(body), rule_.many ? g::of_rule(text.first) : g::literal("")});
    return g::of_rule(text.first);
  }

  const call_rule& rule_;
  g::rule_set out_;
  std::vector<g::rule_id> arguments_; ///< of each tool
};

} // namespace

model::result<g::rule_set> call_rules(std::string_view text) {
  const auto rule = rule_from(text);
  if (!rule)
    return model::failure{"is no rule of calls"};
  return call_writer(*rule).write();
}

} // namespace shoal::openai
