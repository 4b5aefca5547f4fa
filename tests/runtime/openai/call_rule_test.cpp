// tests/runtime/openai/call_rule_test.cpp -- calls that must come, or must keep to their
// schemas where they come: each family's form is what its parser reads; forms of
// tool_choice.
#include "runtime/core/grammar/stacks.hpp"
#include "runtime/openai/answer_parser.hpp"
#include "runtime/openai/chat_request.hpp"
#include "runtime/openai/rules/call_rule.hpp"
#include "runtime/openai/rules/rule_compiler.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(call_rules_of_tools)

using namespace shoal;
using namespace shoal::openai;

namespace {

const std::string number_schema =
  R"({"properties":{"x":{"type":"integer"}},"required":["x"],)"
  R"("additionalProperties":false})";

struct rule_of_texts {
  explicit rule_of_texts(const call_rule& r,
                         core::rule_thought thought = core::rule_thought::none)
    : made(compile_rule(
      openai::rule_of(core::rule_kind::calls, text_of(r), thought))) {
    BOOST_REQUIRE(made);
  }
  bool allows(const std::string& text) const {
    core::grammar::stacks s(*made);
    return s.may_end(s.step(s.start(), text));
  }
  bool goes_on(const std::string& text) const {
    core::grammar::stacks s(*made);
    return s.step(s.start(), text) != core::grammar::nowhere;
  }
  model::result<core::grammar::grammar> made;
};

call_rule two_tools(call_form form, bool must, bool many = true) {
  call_rule out;
  out.form = form;
  out.must = must;
  out.many = many;
  out.tools = {{"add", number_schema}, {"say \"", std::nullopt}};
  if (form == call_form::mistral_named)
    out.tools[1].name = "say";
  return out;
}

struct family {
  call_form form;
  call_format parser;
  std::string one, other, bad; ///< calls: of each tool, and against the schema
  std::string both;            ///< calls one behind the other
};

const std::vector<family> families{
  {call_form::hermes, call_format::hermes,
   "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"x\": 1}}\n</tool_call>",
   "<tool_call>{\"name\": \"say \\\"\", \"arguments\": {\"y\": "
   "[2]}}</tool_call>",
   "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"x\": "
   "true}}\n</tool_call>",
   "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"x\": 1}}\n</tool_call>\n"
   "<tool_call>{\"name\": \"say \\\"\", \"arguments\": {}}</tool_call>"},
  {call_form::llama, call_format::llama,
   R"({"name": "add", "parameters": {"x": 1}})",
   R"(<|python_tag|>{"name": "say \"", "parameters": {"y": [2]}})",
   R"({"name": "add", "parameters": {"x": true}})",
   R"({"name": "add", "parameters": {"x": 1}}; )"
   R"({"name": "say \"", "parameters": {}})"},
  {call_form::mistral_list, call_format::mistral,
   R"([TOOL_CALLS][{"name": "add", "arguments": {"x": 1}}])",
   R"([TOOL_CALLS][{"name": "say \"", "arguments": {"y": [2]}}])",
   R"([TOOL_CALLS][{"name": "add", "arguments": {"x": true}}])",
   R"([TOOL_CALLS][{"name": "add", "arguments": {"x": 1}}, )"
   R"({"name": "say \"", "arguments": {}}])"},
  {call_form::mistral_named, call_format::mistral,
   R"([TOOL_CALLS]add[ARGS]{"x": 1})", R"([TOOL_CALLS]say[ARGS]{"y": [2]})",
   R"([TOOL_CALLS]add[ARGS]{"x": true})",
   R"([TOOL_CALLS]add[ARGS]{"x": 1}[TOOL_CALLS]say[ARGS]{})"},
};

std::vector<tool_call> calls_in(const std::string& text, call_format form) {
  answer_parser parser({form, false, false, false}, 1);
  std::vector<tool_call> out;
  const auto take = [&](answer_parser::piece p) {
    for (tool_call& c : p.calls)
      if (!out.empty() && out.back().index == c.index)
        out.back().arguments += c.arguments;
      else
        out.push_back(std::move(c));
  };
  take(parser.push(text));
  take(parser.finish());
  return out;
}

chat_request chat(const std::string& fields) {
  auto parsed = parse_chat(R"({"messages":[{"role":"user","content":"a"}],)"
                           + fields + "}");
  if (const auto* wrong = std::get_if<api_error>(&parsed))
    BOOST_FAIL(fields + ": " + wrong->message);
  return std::get<chat_request>(parsed);
}

const std::string two_functions =
  R"("tools":[{"type":"function","function":{"name":"f","strict":true,)"
  R"("parameters":{"type":"object"}}},)"
  R"({"type":"function","function":{"name":"g"}}])";

} // namespace

BOOST_AUTO_TEST_CASE(forced_calls_have_the_form_of_the_family) {
  for (const family& f : families)
    BOOST_TEST_CONTEXT(f.one) {
      const rule_of_texts many(two_tools(f.form, true, true));
      const rule_of_texts one(two_tools(f.form, true, false));
      for (const std::string& text : {f.one, f.other}) {
        BOOST_TEST(many.allows(text));
        BOOST_TEST(one.allows(text));
        BOOST_TEST(calls_in(text, f.parser).size() == 1u);
      }
      BOOST_TEST(calls_in(f.one, f.parser)[0].name == "add");
      BOOST_TEST(calls_in(f.one, f.parser)[0].arguments == "{\"x\": 1}");
      BOOST_TEST(many.allows(f.both));
      BOOST_TEST(!one.goes_on(f.both));
      BOOST_TEST(calls_in(f.both, f.parser).size() == 2u);
      for (const rule_of_texts* r : {&many, &one}) {
        BOOST_TEST(!r->goes_on(f.bad));
        BOOST_TEST(!r->goes_on("Well, "));
        BOOST_TEST(!r->allows(""));
        BOOST_TEST(!r->allows(f.one.substr(0, f.one.size() - 1)));
      }
    }
}

BOOST_AUTO_TEST_CASE(where_a_call_begins_in_a_text_it_keeps_to_its_schema) {
  for (const family& f : families)
    BOOST_TEST_CONTEXT(f.one) {
      const rule_of_texts r(two_tools(f.form, false, true));
      for (const std::string& text :
           {std::string(), std::string("1 < 2, <tool_cal, [TOOL, \xc3\xa9"),
            f.one, f.other, f.both, "Well. " + f.other + ""}) {
        if (f.form == call_form::llama && text.starts_with("Well"))
          continue; // below
        BOOST_TEST(r.allows(text), text);
      }
      BOOST_TEST(!r.goes_on(f.bad));
    }
  const rule_of_texts hermes(two_tools(call_form::hermes, false));
  BOOST_TEST(hermes.allows("Yes. " + families[0].one + "\nAnd so on."));
  BOOST_TEST(hermes.allows("<tool_<tool_call" + families[0].one));
  BOOST_TEST(!hermes.goes_on("<tool_<tool_call><tool_call>"));
  BOOST_TEST(!hermes.goes_on("Yes. " + families[0].bad));
  const rule_of_texts alone(two_tools(call_form::hermes, false, false));
  BOOST_TEST(alone.allows("Yes. " + families[0].one));
  BOOST_TEST(!alone.goes_on("Yes. " + families[0].one + "\n"));
  BOOST_TEST(!alone.goes_on(families[0].both));
  const rule_of_texts llama(two_tools(call_form::llama, false));
  BOOST_TEST(llama.allows("A set: {1, 2}"));
  BOOST_TEST(llama.allows("Yes. " + families[1].other));
  BOOST_TEST(!llama.goes_on("Yes. <|python_tag|>print"));
  BOOST_TEST(!llama.goes_on(" {1")); // it would be taken for a call
}

/// A special token stands for a mark, and for no text.
BOOST_AUTO_TEST_CASE(marks_may_be_special_tokens) {
  const std::string mark = mark_bytes("[TOOL_CALLS]");
  const std::string args = mark_bytes("[ARGS]");
  for (const bool must : {true, false}) {
    const rule_of_texts r(two_tools(call_form::mistral_named, must));
    BOOST_TEST(r.allows(mark + "add" + args + "{\"x\": 1}"));
    BOOST_TEST(!r.goes_on(mark + "add" + args + "{\"y"));
    BOOST_TEST(!r.goes_on(mark + mark));
  }
  const auto text =
    compile_rule(openai::rule_of(core::rule_kind::regex, "[^x]*"));
  BOOST_REQUIRE(text);
  core::grammar::stacks s(*text);
  BOOST_TEST((s.step(s.start(), mark) == core::grammar::nowhere));
}

BOOST_AUTO_TEST_CASE(thoughts_come_before_calls) {
  const std::string& call = families[0].one;
  const rule_of_texts may(two_tools(call_form::hermes, true),
                          core::rule_thought::may_come);
  BOOST_TEST(may.allows(call));
  BOOST_TEST(may.allows("<think>a <tool_call></think>\n\n" + call));
  BOOST_TEST(!may.allows("<think>a</think>\n\n"));
  const rule_of_texts begun(two_tools(call_form::hermes, false),
                            core::rule_thought::begun);
  BOOST_TEST(begun.allows("a <tool_call> b</think>Well " + call));
  BOOST_TEST(!begun.goes_on("a</think>" + families[0].bad));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_kept_to_names_the_tool) {
  for (const char* schema :
       {R"({"type":"array"})", R"({"type":"object","patternProperties":{}})",
        "7"}) {
    call_rule r = two_tools(call_form::hermes, true);
    r.tools[1].schema = schema;
    const auto made =
      compile_rule(openai::rule_of(core::rule_kind::calls, text_of(r)));
    BOOST_REQUIRE(!made);
    BOOST_TEST(made.message().find("say") != std::string::npos);
  }
  // What a peer says may be anything.
  const std::string before = R"({"form":1,"must":true,"many":true,"tools":)";
  for (const std::string& text :
       {std::string(), std::string("7"), std::string("{}"),
        std::string(R"({"form":9,"tools":[]})"),
        std::string(R"({"form":"x","must":true,"many":true,"tools":[]})"),
        std::string(R"({"form":1e300,"must":true,"many":true,"tools":[]})"),
        before + "[]}", before + "[1]}", before + "{}}", before + "[{}]}",
        before + R"([{"name":7,"schema":null}]})",
        before + R"([{"name":"a","schema":7}]})"})
    BOOST_TEST(!compile_rule(openai::rule_of(core::rule_kind::calls, text)));
}

BOOST_AUTO_TEST_CASE(choices_of_tools_are_read) {
  const auto calls = [](const std::string& choice) {
    return chat(two_functions + choice).calls;
  };
  const wanted_calls open = calls("");
  BOOST_TEST((!open.must && open.constrain && open.tools.size() == 2u));
  BOOST_TEST((open.tools[0].strict && !open.tools[1].strict));
  BOOST_TEST(*open.tools[0].schema == R"({"type":"object"})");
  const wanted_calls must = calls(R"(,"tool_choice":"required")");
  BOOST_TEST((must.must && !must.named && must.tools.size() == 2u));
  const wanted_calls named =
    calls(R"(,"tool_choice":{"type":"function","function":{"name":"g"}})");
  BOOST_TEST((named.must && named.named && named.tools.size() == 1u));
  BOOST_TEST(named.tools[0].name == "g");
  const wanted_calls some = calls(
    R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":
       [{"type":"function","function":{"name":"g"}}]}})");
  BOOST_TEST((!some.must && some.constrain && some.tools.size() == 1u));
  const chat_request none = chat(two_functions + R"(,"tool_choice":"none")");
  BOOST_TEST((!none.tools_allowed && none.asked.tools.is_null()
              && !none.calls.constrain));
  const chat_request usual =
    chat(R"("tools":[{"type":"function","function":{"name":"g"}}])");
  BOOST_TEST((usual.tools_allowed && !usual.calls.constrain));
}

BOOST_AUTO_TEST_SUITE_END()
