// tests/runtime/openai/output_rule_test.cpp -- what the text of an answer must be: all
// fields that say it, and mistakes in them; thoughts before it.
#include "runtime/core/grammar/stacks.hpp"
#include "runtime/files/json.hpp"
#include "runtime/openai/chat_request.hpp"
#include "runtime/openai/completion_request.hpp"
#include "runtime/openai/rules/rule_compiler.hpp"

#include <boost/test/unit_test.hpp>

using namespace shoal;
using namespace shoal::openai;
using core::rule_kind;
using core::rule_thought;

namespace {

const std::string schema = R"({"type":"integer"})";

std::variant<chat_request, api_error> chat(const std::string& fields) {
  return parse_chat(
    R"({"model":"m","messages":[{"role":"user","content":"x"}],)" + fields
    + "}");
}

std::variant<completion_request, api_error>
completion(const std::string& fields) {
  return parse_completion(R"({"model":"m","prompt":"x",)" + fields + "}");
}

std::string text_of(const core::text_rule& rule) {
  return {reinterpret_cast<const char*>(rule.text.data()), rule.text.size()};
}

/// Whether a whole text is allowed.
bool allows(const core::text_rule& rule, const std::string& text) {
  const auto compiled = compile_rule(rule);
  BOOST_REQUIRE(compiled);
  core::grammar::stacks s(*compiled);
  return s.may_end(s.step(s.start(), text));
}

} // namespace

BOOST_AUTO_TEST_SUITE(output_rules)

BOOST_AUTO_TEST_CASE(each_field_says_the_same_for_chats_and_completions) {
  const struct {
    std::string fields;
    rule_kind kind;
    std::string text, field;
  } cases[] = {
    {R"("response_format":{"type":"json_object"})", rule_kind::json_object, "",
     "response_format"},
    {R"("response_format":{"type":"json_object","schema":)" + schema + "}",
     rule_kind::json_schema, schema, "response_format.schema"},
    {R"("response_format":{"type":"json_schema","json_schema":{"name":"n",)"
     R"("strict":true,"schema":)"
       + schema + "}}",
     rule_kind::json_schema, schema, "response_format.json_schema.schema"},
    {R"("guided_json":)" + schema, rule_kind::json_schema, schema,
     "guided_json"},
    {R"("guided_json":"{\"type\":\"integer\"}")", rule_kind::json_schema,
     schema, "guided_json"},
    {R"("guided_regex":"a+")", rule_kind::regex, "a+", "guided_regex"},
    {R"("guided_choice":["a\"b","é\n"])", rule_kind::grammar,
     "root ::= \"a\\x22b\" | \"é\\x0a\"", "guided_choice"},
    {R"("guided_grammar":"root ::= \"a\"")", rule_kind::grammar,
     "root ::= \"a\"", "guided_grammar"},
    {R"("structured_outputs":{"json":)" + schema + "}", rule_kind::json_schema,
     schema, "structured_outputs.json"},
    {R"("structured_outputs":{"json_object":true})", rule_kind::json_object, "",
     "structured_outputs.json_object"},
    {R"("structured_outputs":{"regex":"a+","choice":null})", rule_kind::regex,
     "a+", "structured_outputs.regex"},
    {R"("structured_outputs":{"choice":["a"]})", rule_kind::grammar,
     "root ::= \"a\"", "structured_outputs.choice"},
    {R"("structured_outputs":{"grammar":"root ::= \"a\""})", rule_kind::grammar,
     "root ::= \"a\"", "structured_outputs.grammar"},
    {R"("json_schema":)" + schema, rule_kind::json_schema, schema,
     "json_schema"},
    {R"("grammar":"root ::= \"a\"","guided_json":null)", rule_kind::grammar,
     "root ::= \"a\"", "grammar"},
  };
  for (const auto& c : cases)
    BOOST_TEST_CONTEXT(c.fields) {
      const auto check = [&](const auto& parsed, const auto* request) {
        BOOST_REQUIRE(request != nullptr);
        BOOST_REQUIRE(request->rule);
        BOOST_TEST((request->rule->kind == c.kind));
        BOOST_TEST(text_of(*request->rule) == c.text);
        BOOST_TEST(request->rule_field == c.field);
        BOOST_TEST(bool(compile_rule(*request->rule)));
        (void)parsed;
      };
      const auto chats = chat(c.fields);
      check(chats, std::get_if<chat_request>(&chats));
      const auto completions = completion(c.fields);
      check(completions, std::get_if<completion_request>(&completions));
    }
  const auto plain = chat(R"("response_format":{"type":"text"})");
  BOOST_TEST(!std::get<chat_request>(plain).rule);
}

BOOST_AUTO_TEST_CASE(mistakes_name_their_field) {
  const std::string large(core::rule_bytes_max + 1, 'a');
  const struct {
    std::string fields, param;
  } cases[] = {
    {R"("response_format":"text")", "response_format"},
    {R"("response_format":{"type":"xml"})", "response_format.type"},
    {R"("response_format":{"kind":"text"})", "response_format.type"},
    {R"("response_format":{"type":"json_schema"})",
     "response_format.json_schema"},
    {R"("response_format":{"type":"json_schema","json_schema":{"name":"n"}})",
     "response_format.json_schema.schema"},
    {R"("guided_json":7)", "guided_json"},
    {R"("guided_regex":["a"])", "guided_regex"},
    {R"("guided_regex":")" + large + "\"", "guided_regex"},
    {R"("guided_choice":"a")", "guided_choice"},
    {R"("guided_choice":[])", "guided_choice"},
    {R"("guided_choice":[1])", "guided_choice"},
    {R"("structured_outputs":[])", "structured_outputs"},
    {R"("structured_outputs":{"structural_tag":"x"})",
     "structured_outputs.structural_tag"},
    {R"("structured_outputs":{"json_object":1})",
     "structured_outputs.json_object"},
    // More than one.
    {R"("guided_json":{},"grammar":"root ::= \"a\"")", "grammar"},
    {R"("response_format":{"type":"json_object"},"guided_regex":"a")",
     "guided_regex"},
    {R"("structured_outputs":{"regex":"a","choice":["a"]})",
     "structured_outputs.choice"},
  };
  for (const auto& c : cases)
    BOOST_TEST_CONTEXT(c.fields.substr(0, 100)) {
      const auto out = chat(c.fields);
      const auto* const wrong = std::get_if<api_error>(&out);
      BOOST_REQUIRE(wrong != nullptr);
      BOOST_TEST(wrong->status == 400);
      BOOST_TEST(wrong->param == c.param);
    }
}

BOOST_AUTO_TEST_CASE(a_choice_is_one_of_its_texts) {
  const auto out = completion(R"("guided_choice":["a\"b","é\n","a\\x"])");
  const auto& rule = *std::get<completion_request>(out).rule;
  for (const char* good : {"a\"b", "é\n", "a\\x"})
    BOOST_TEST(allows(rule, good));
  for (const char* bad : {"", "a", "a\"", "é", "a\"bé\n"})
    BOOST_TEST(!allows(rule, bad));
}

BOOST_AUTO_TEST_CASE(a_thought_may_come_before) {
  const auto rule = [](rule_thought thought) {
    return rule_of(rule_kind::regex, "[0-9]+", thought);
  };
  const std::string thoughts[] = {"",     "hm",         "</th",   "<</</t",
                                  "</</", "</thin</th", "a\nb é", "7"};
  for (const std::string& t : thoughts)
    BOOST_TEST_CONTEXT(t) {
      const std::string ends = t + "</think>";
      BOOST_TEST(allows(rule(rule_thought::begun), ends + "12"));
      BOOST_TEST(allows(rule(rule_thought::begun), ends + "\n\n12"));
      BOOST_TEST(!allows(rule(rule_thought::begun), t + "12"));
      BOOST_TEST(!allows(rule(rule_thought::begun), ends + "a"));
      BOOST_TEST(!allows(rule(rule_thought::begun), ends + ends + "12"));
      BOOST_TEST(allows(rule(rule_thought::may_come), "<think>" + ends + "12"));
      BOOST_TEST(!allows(rule(rule_thought::may_come), ends + "12"));
    }
  BOOST_TEST(allows(rule(rule_thought::may_come), "12"));
  BOOST_TEST(!allows(rule(rule_thought::none), "<think></think>12"));
}

/// A rule that calls its first one means what it describes, without a thought.
BOOST_AUTO_TEST_CASE(a_thought_comes_once) {
  const auto rule =
    rule_of(rule_kind::grammar, "root ::= \"a\" | \"(\" root \")\"",
            rule_thought::may_come);
  BOOST_TEST(allows(rule, "((a))"));
  BOOST_TEST(allows(rule, "<think></think>((a))"));
  BOOST_TEST(!allows(rule, "(<think></think>a)"));
}

/// Each of these ended a node, or kept a thread busy for ever.
BOOST_AUTO_TEST_CASE(hostile_schemas_are_refused) {
  std::string doubled = "{\"$ref\":\"#/$defs/A30\",\"$defs\":{\"A0\":"
                        "{\"type\":\"string\"}";
  for (int n = 1; n <= 30; ++n) {
    const std::string before =
      "{\"$ref\":\"#/$defs/A" + std::to_string(n - 1) + "\"}";
    doubled += ",\"A" + std::to_string(n)
               + "\":{\"type\":\"string\",\"anyOf\":[" + before + "," + before
               + "]}";
  }
  doubled += "}}";
  std::string branches = "{\"oneOf\":[{\"const\":0}";
  for (int n = 1; n < 5000; ++n)
    branches += ",{\"const\":" + std::to_string(n) + "}";
  branches += "]}";
  const std::string hostile[] = {
    doubled, branches,
    R"({"allOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}],"$defs":{
        "A":{"type":"object","properties":{"x":{"$ref":"#/$defs/A"}}},
        "B":{"type":"object","properties":{"x":{"$ref":"#/$defs/B"}}}}})",
    R"({"type":"string","format":1})",
    R"({"type":"object","properties":{")" + std::string(100'000, 'a')
      + R"(":{}},"additionalProperties":true})"};
  for (const std::string& text : hostile)
    BOOST_TEST_CONTEXT(text.substr(0, 80))
  BOOST_TEST(!compile_rule(rule_of(rule_kind::json_schema, text)));
  // What is true allows everything.
  const auto both = rule_of(rule_kind::json_schema,
                            R"({"type":"object","required":["x"],
                "allOf":[{"properties":{"x":true}},
                         {"properties":{"x":{"type":"boolean"}}}]})");
  BOOST_TEST(allows(both, R"({"x":true})"));
  BOOST_TEST(!allows(both, R"({"x":1})"));
}

BOOST_AUTO_TEST_CASE(hostile_grammars_come_to_an_end) {
  std::string nothing = "root ::= r0 \"b\"\n";
  for (int n = 0; n < 30; ++n)
    nothing += "r" + std::to_string(n) + " ::= r" + std::to_string(n + 1) + " r"
               + std::to_string(n + 1) + "\n";
  nothing += "r30 ::= \"\"\n";
  const auto made = compile_rule(rule_of(rule_kind::grammar, nothing));
  if (made) {
    core::grammar::stacks all(*made);
    BOOST_TEST(all.work() < 1'000'000u);
    static_cast<void>(all.start());
    BOOST_TEST(all.work() < 1'000'000u);
  }
  BOOST_TEST(!compile_rule(rule_of(rule_kind::regex, "(a?){10000}")));
}

BOOST_AUTO_TEST_SUITE_END()
