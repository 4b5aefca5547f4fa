// runtime/openai/rules/rule_compiler.cpp -- by kind; a thought comes before.
#include "runtime/openai/rules/rule_compiler.hpp"

#include "runtime/core/grammar/gbnf.hpp"
#include "runtime/core/grammar/regex.hpp"
#include "runtime/openai/rules/call_rule.hpp"
#include "runtime/openai/rules/free_text.hpp"
#include "runtime/openai/rules/json_schema.hpp"

#include <span>
#include <utility>

namespace shoal::openai {

namespace g = core::grammar;

namespace {

model::result<g::rule_set> parsed(core::rule_kind kind, std::string_view text) {
  switch (kind) {
  case core::rule_kind::json_schema:
    return json_schema_rules(text);
  case core::rule_kind::json_object:
    return json_object_rules();
  case core::rule_kind::grammar:
    return g::parse_gbnf(text);
  case core::rule_kind::calls:
    return call_rules(text);
  case core::rule_kind::regex:
    break;
  }
  auto pattern = g::parse_regex(text, g::regex_use::whole_text);
  if (!pattern)
    return pattern.why();
  g::rule_set out;
  out.add("the pattern", *std::move(pattern));
  return out;
}

/// The first rule becomes what it was behind a thought.
void add_thought(g::rule_set& rules, bool begun) {
  const g::rule_id answer =
    rules.add(rules.names.front(), std::move(rules.bodies.front()));
  // Rules that named the first one mean the answer alone.
  const auto rename = [&](auto& self, g::expression& e) -> void {
    if (e.is == g::expression::kind::rule && e.rule == 0)
      e.rule = answer;
    for (g::expression& part : e.parts)
      self(self, part);
  };
  for (g::expression& e : rules.bodies)
    rename(rename, e);
  const g::rule_id thought =
    text_up_to(rules, "</think>", std::nullopt, false).first;
  const g::expression gap =
    g::repetition(g::characters({{U'\n', U'\n'}, {U' ', U' '}}), 0, 4);
  std::vector<g::expression> before;
  if (!begun)
    before.push_back(mark_of("<think>"));
  before.push_back(g::of_rule(thought));
  before.push_back(gap);
  g::expression all = g::sequence(std::move(before));
  if (!begun)
    all = g::optional(std::move(all));
  rules.bodies.front() = g::sequence({std::move(all), g::of_rule(answer)});
}

} // namespace

core::text_rule rule_of(core::rule_kind kind, std::string_view text,
                        core::rule_thought thought) {
  const auto bytes = std::as_bytes(std::span(text));
  return {kind, {bytes.begin(), bytes.end()}, thought};
}

model::result<g::grammar> compile_rule(const core::text_rule& rule) {
  auto rules =
    parsed(rule.kind,
           {reinterpret_cast<const char*>(rule.text.data()), rule.text.size()});
  if (!rules)
    return rules.why();
  if (rule.thought != core::rule_thought::none)
    add_thought(*rules, rule.thought == core::rule_thought::begun);
  return g::compile(*std::move(rules));
}

} // namespace shoal::openai
