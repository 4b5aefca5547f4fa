// tests/runtime/openai/output_rule_test.cpp -- what the text of an answer must be: all
// fields that say it, and mistakes in them; thoughts before it.
#include "runtime/core/grammar/stacks.hpp"
#include "runtime/files/json.hpp"
#include "runtime/openai/chat_request.hpp"
#include "runtime/openai/completion_request.hpp"
#include "runtime/openai/rules/rule_compiler.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>

BOOST_AUTO_TEST_SUITE(output_rules)

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

BOOST_AUTO_TEST_CASE(long_enumerations_lose_nothing) {
  std::string schema = R"({"enum":["word-0")", choice = "[\"word-0\"";
  for (int n = 1; n != 3000; ++n) {
    const std::string word = ",\"word-" + std::to_string(n) + "\"";
    schema += word;
    choice += word;
  }
  const auto rule = rule_of(rule_kind::json_schema, schema + "]}");
  BOOST_TEST(allows(rule, "\"word-1\""));
  BOOST_TEST(allows(rule, "\"word-2999\""));
  BOOST_TEST(!allows(rule, "\"word-3000\""));
  const auto out = completion("\"guided_choice\":" + choice + "]");
  const auto& choices = *std::get<completion_request>(out).rule;
  BOOST_TEST(allows(choices, "word-2999"));
  BOOST_TEST(!allows(choices, "word-"));
}

std::string object_of(const char* name, int first, int count) {
  std::string out = R"({"type":"object","properties":{)";
  for (int n = first; n != first + count; ++n)
    out += (n == first ? "\"" : ",\"") + (name + std::to_string(n)) + "\":{}";
  return out + "}}";
}

BOOST_AUTO_TEST_CASE(many_properties_may_be_left_out) {
  for (const int count : {900, 2500, 4050}) {
    const auto rule = rule_of(rule_kind::json_schema, object_of("p", 0, count));
    const auto made = compile_rule(rule);
    BOOST_TEST(bool(made) == (count != 4050));
    if (!made)
      BOOST_TEST(made.message().find("more than 4000 properties that may all "
                                     "come next are not understood")
                 != std::string::npos);
    else
      BOOST_TEST(allows(rule, R"({"p3":1,"p899":[]})"));
  }
}

/// Branches of anyOf go on together.
BOOST_AUTO_TEST_CASE(branches_with_many_properties_each_are_counted_together) {
  for (const int branches : {2, 3, 5}) {
    std::string schema = R"({"anyOf":[)" + object_of("a", 0, 900);
    for (int k = 1; k != branches; ++k)
      schema += "," + object_of("a", 1000 * k, 900);
    const auto rule = rule_of(rule_kind::json_schema, schema + "]}");
    const auto made = compile_rule(rule);
    BOOST_TEST(bool(made) == (branches != 5));
    if (!made)
      BOOST_TEST(made.message().find("/anyOf: more than 4000 properties")
                 != std::string::npos);
    else
      BOOST_TEST(allows(rule, R"({"a1003":1,"a1899":[]})"));
  }
}

BOOST_AUTO_TEST_CASE(an_object_with_too_many_properties_is_refused_at_once) {
  const auto required = [](int count) {
    std::string out = R"({"additionalProperties":true,"required":["n0")";
    for (int n = 1; n != count; ++n)
      out += ",\"n" + std::to_string(n) + "\"";
    return rule_of(rule_kind::json_schema, out + "]}");
  };
  const auto made = compile_rule(required(4097));
  BOOST_REQUIRE(!made);
  BOOST_TEST(
    made.message()
    == "schema: an object may have at most 4096 properties, with those "
       "that are required");
  const auto begin = std::chrono::steady_clock::now();
  BOOST_TEST(!compile_rule(required(20'000)));
  const std::chrono::duration<double> took =
    std::chrono::steady_clock::now() - begin;
  BOOST_TEST_MESSAGE(took.count() << " s");
  const auto few = required(1000);
  BOOST_TEST(bool(compile_rule(few)));
}

/// Names that others may not have, also where one is the beginning of another.
BOOST_AUTO_TEST_CASE(additional_properties_have_other_names) {
  const auto rule =
    rule_of(rule_kind::json_schema,
            R"({"properties":{"":{"const":0},"a":{"const":1},"ab":{"const":2},
        "abc":{"const":3},"x\"":{"const":4},"\u00e9":{"const":5}},
        "additionalProperties":{"const":9}})");
  for (const std::string name : {"", "a", "ab", "abc", "\u00e9"})
    BOOST_TEST_CONTEXT(name)
  BOOST_TEST(!allows(rule, "{\"" + name + "\":9}"));
  for (const std::string name :
       {"b", "ac", "abd", "abcd", "aa", "x", "\u00ea", "A"})
    BOOST_TEST_CONTEXT(name)
  BOOST_TEST(allows(rule, "{\"" + name + "\":9}"));
  BOOST_TEST(allows(rule, R"({"":0,"a":1,"abc":3,"b":9,"abd":9})"));
  BOOST_TEST(!allows(rule, R"({"a":1,"a":9})"));
}

/// Of these, texts were written that the schema forbids.
BOOST_AUTO_TEST_CASE(what_one_of_and_references_say_is_not_passed_over) {
  const auto schema = [](const std::string& text) {
    return rule_of(rule_kind::json_schema, text);
  };
  for (const char* overlapping :
       {R"({"oneOf":[{"minimum":5},{"type":"string"}]})",
        R"({"oneOf":[{"type":["object","null"],"required":["k"],
            "properties":{"k":{"const":1}}},{"type":["object","null"],
            "required":["k"],"properties":{"k":{"const":2}}}]})",
        R"({"oneOf":[{"minimum":1,"anyOf":[{"type":"string"}]},
            {"type":"string"}]})"}) {
    const auto made = compile_rule(schema(overlapping));
    BOOST_REQUIRE(!made);
    BOOST_TEST(made.message().find("may both allow") != std::string::npos);
  }
  const std::string defs = R"("$defs":{"a":{"type":"string"}})";
  const auto beside =
    schema(R"({"$ref":"#/$defs/a","maxLength":2,)" + defs + "}");
  BOOST_TEST(allows(beside, "\"ab\""));
  BOOST_TEST(!allows(beside, "\"abc\""));
  BOOST_TEST(!compile_rule(
    schema(R"({"type":"string","anyOf":[{"$ref":"#/$defs/a","maxLength":2}],)"
           + defs + "}")));
  BOOST_TEST(!compile_rule(schema(
    R"({"items":{"$id":"http://a/b","$ref":"#/$defs/a"},)" + defs + "}")));
}

BOOST_AUTO_TEST_CASE(numbers_between_bounds_may_be_short) {
  const auto rule = rule_of(rule_kind::json_schema,
                            R"({"type":"number","minimum":0.25,
                                "exclusiveMaximum":1.75})");
  for (const char* good :
       {"0.25", "0.3", "0.255", "0.99", "1", "1.0", "1.5", "1.7", "1.749"})
    BOOST_TEST(allows(rule, good), good);
  for (const char* bad : {"0.2", "0.249", "1.75", "1.8", "2", "0", "-1"})
    BOOST_TEST(!allows(rule, bad), bad);
}

/// All keywords of draft 2020-12 that are not understood, and of drafts before.
BOOST_AUTO_TEST_CASE(each_unknown_keyword_is_refused_by_its_name) {
  for (const std::string keyword : {"multipleOf",
                                    "uniqueItems",
                                    "contains",
                                    "minContains",
                                    "maxContains",
                                    "minProperties",
                                    "maxProperties",
                                    "dependentRequired",
                                    "dependentSchemas",
                                    "propertyNames",
                                    "patternProperties",
                                    "unevaluatedItems",
                                    "unevaluatedProperties",
                                    "not",
                                    "if",
                                    "then",
                                    "else",
                                    "$anchor",
                                    "$dynamicRef",
                                    "$dynamicAnchor",
                                    "$vocabulary",
                                    "contentEncoding",
                                    "contentMediaType",
                                    "contentSchema",
                                    "additionalItems",
                                    "dependencies",
                                    "$recursiveRef",
                                    "$recursiveAnchor",
                                    "id",
                                    "extends",
                                    "disallow",
                                    "divisibleBy",
                                    "nullable"}) {
    const std::string bad = "{\"" + keyword + "\":{}}";
    for (const std::string& text :
         {bad, R"({"type":"object","properties":{"a":)" + bad + "}}",
          R"({"type":"array","items":)" + bad + "}",
          R"({"type":"array","prefixItems":[)" + bad + "]}",
          R"({"type":"object","additionalProperties":)" + bad + "}",
          R"({"anyOf":[)" + bad + "]}", R"({"oneOf":[)" + bad + "]}",
          R"({"type":"string","allOf":[)" + bad + "]}",
          R"({"$ref":"#/$defs/a","$defs":{"a":)" + bad + "}}"}) {
      const auto made = compile_rule(rule_of(rule_kind::json_schema, text));
      BOOST_REQUIRE_MESSAGE(!made, text);
      BOOST_TEST(made.message().find("/" + keyword) != std::string::npos,
                 text << ": " << made.message());
    }
  }
}

/// Each took minutes, or gigabytes.
BOOST_AUTO_TEST_CASE(hostile_rules_are_refused_soon) {
  const auto list = [](const std::string& item, std::size_t bytes) {
    std::string out = item;
    while (out.size() + item.size() + 1 < bytes)
      out += "," + item;
    return out;
  };
  const auto numbered = [](const std::string& a, const std::string& b,
                           int count) {
    std::string out = a + "0" + b;
    for (int n = 1; n < count; ++n)
      out += "," + a + std::to_string(n) + b;
    return out;
  };
  const std::string reference =
    R"({"anyOf":[{"$ref":"#/$defs/e"}],"type":"integer"})";
  std::string backwards;
  for (int n = 9000; n > 0; --n)
    backwards +=
      "r" + std::to_string(n) + "::=r" + std::to_string(n - 1) + "\n";
  const struct {
    rule_kind kind;
    std::string text;
  } hostile[] = {
    {rule_kind::json_schema, R"({"prefixItems":[)" + list(reference, 60'000)
                               + R"(],"$defs":{"e":{"enum":[)"
                               + numbered("", "", 10'000) + "]}}}"},
    {rule_kind::json_schema,
     R"({"allOf":[{"required":[)" + numbered("\"n", "\"", 8'000) + "]},"
       + list(R"({"required":["a"]})", 60'000) + R"(],"type":"object"})"},
    {rule_kind::json_schema,
     R"({"prefixItems":[)"
       + list(R"({"anyOf":[{"$ref":"#/$defs/e"}],"type":"string"})", 60'000)
       + R"(],"$defs":{"e":{"pattern":")" + std::string(60'000, '.') + "\"}}}"},
    {rule_kind::json_schema, R"({"oneOf":[{"enum":[)" + numbered("", "", 9'000)
                               + R"(]},{"enum":[)" + numbered("-1", "", 9'000)
                               + "]}]}"},
    {rule_kind::json_schema,
     R"({"properties":{")" + std::string(50'000, 'n') + R"(":{"properties":{)"
       + numbered("\"", "\":{}", 4'000) + R"(},"required":[)"
       + numbered("\"", "\"", 3'000) + "]}}}"},
    {rule_kind::json_schema,
     R"({"prefixItems":[)" + list(R"({"minimum":1,"maximum":99999.5})", 120'000)
       + "]}"},
    {rule_kind::json_schema,
     R"({"pattern":")" + std::string(120'000, '.') + "\"}"},
    {rule_kind::json_schema, R"({"pattern":"(a|a)*b"})"},
    {rule_kind::json_schema, R"({"pattern":"^(a|aa|a*)*b$"})"},
    {rule_kind::json_schema, R"({"pattern":"a{0,100000}"})"},
    {rule_kind::json_schema, R"({"pattern":"((a{0,9999}){0,9999}){0,9999}"})"},
    {rule_kind::json_schema, std::string(10'000, '[')},
    {rule_kind::json_schema, std::string(1'000'000, ' ')},
    {rule_kind::regex, "(a{1,9999}){1,9999}"},
    {rule_kind::regex, std::string(100'000, '(')},
    {rule_kind::regex, "(" + list("a?", 100'000) + "){0,9999}"},
    {rule_kind::grammar, backwards + "root::=r9000\nr0::=\"a\""},
    {rule_kind::grammar, "root ::= " + std::string(100'000, '(')},
  };
  for (const auto& h : hostile)
    BOOST_TEST_CONTEXT(h.text.substr(0, 80)) {
      const auto begin = std::chrono::steady_clock::now();
      const auto made = compile_rule(rule_of(h.kind, h.text));
      const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
      BOOST_TEST(took.count() < 20); // ten times what it takes
      if (made)
        BOOST_TEST(made->nodes.size() <= core::grammar::nodes_max);
      BOOST_TEST_MESSAGE(
        took.count() << " s, "
                     << (made ? "compiled" : made.message().substr(0, 200)));
    }
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
