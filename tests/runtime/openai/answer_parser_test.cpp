// tests/runtime/openai/answer_parser_test.cpp -- thoughts, content and calls, however
// the text is cut into pieces.
#include "runtime/openai/answer_parser.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>

BOOST_AUTO_TEST_SUITE(answer_parsers)

using namespace shoal::openai;
namespace data = boost::unit_test::data;

namespace {

constexpr answer_format plain{},
  hermes{call_format::hermes, false, true, false},
  llama{call_format::llama, false, false, false},
  mistral{call_format::mistral, false, false, false},
  within{call_format::none, false, true, true};

/// "(thought)content f{...} g{...}"
std::string shown(const answer_parser::piece& all) {
  std::string out;
  if (!all.reasoning.empty())
    out += "(" + all.reasoning + ")";
  out += all.content;
  for (const tool_call& c : all.calls)
    out += " " + c.name + c.arguments;
  return out;
}

void add(answer_parser::piece& to, answer_parser::piece more) {
  to.reasoning += more.reasoning;
  to.content += more.content;
  for (tool_call& c : more.calls) {
    if (c.index == to.calls.size()) {
      BOOST_TEST(!c.name.empty());
      BOOST_TEST(!c.id.empty());
      to.calls.push_back(std::move(c));
      continue;
    }
    // Only the last one grows.
    BOOST_REQUIRE(c.index + 1 == to.calls.size());
    BOOST_TEST(c.name.empty());
    BOOST_TEST(c.id.empty());
    to.calls.back().arguments += c.arguments;
  }
}

struct example {
  answer_format format;
  const char* text;
  const char* result;
};
std::ostream& operator<<(std::ostream& out, const example& e) {
  return out << e.text;
}

const example examples[] = {
  {plain, "hello <think> {\"a\"}", "hello <think> {\"a\"}"},
  {plain, "", ""},
  {plain, " \n a \n", " \n a \n"},
  // Thoughts.
  {hermes, "<think>\nwell\n\nso\n</think>\n\nYes.", "(well\n\nso)Yes."},
  {hermes, "\n<think></think>Yes", "Yes"},
  {hermes, "<think>never ends", "(never ends)"},
  {hermes, "No <think>a</think>", "No <think>a</think>"},
  {hermes, "<thin ice", "<thin ice"},
  {within, "well\n</think>\nYes </think>", "(well)Yes </think>"},
  {within, "never </thin", "(never </thin)"},
  // <tool_call>
  {hermes,
   "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"}\\\"{\", \"b\": "
   "[1, {}]}}\n</tool_call>",
   " f{\"a\": \"}\\\"{\", \"b\": [1, {}]}"},
  {hermes,
   "Look:\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n"
   "<tool_call>{\"arguments\": {\"x\": 1}, \"name\": \"g\"}</tool_call>",
   "Look: f{} g{\"x\": 1}"},
  {hermes, "<tool_call>{\"name\": \"f\"}</tool_call>", " f{}"},
  {hermes,
   "<think>a</think>\n<tool_call>{\"name\":\"f\",\"arguments\":{}}"
   "</tool_call>",
   "(a) f{}"},
  {hermes, "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}", " f{\"a\":1}"},
  {hermes, "<tool_call>no json</tool_call> x",
   "<tool_call>no json</tool_call> x"},
  {hermes, "<tool_call>{\"other\": 1}</tool_call>",
   "<tool_call>{\"other\": 1}</tool_call>"},
  {hermes, "a <tool_ca", "a <tool_ca"},
  {hermes, "a < b <tool> c", "a < b <tool> c"},
  {hermes, "text \n", "text \n"},
  // JSON alone.
  {llama, "{\"name\": \"f\", \"parameters\": {\"a\": 1}}", " f{\"a\": 1}"},
  {llama, "\n<|python_tag|>{\"name\": \"f\", \"parameters\": {}}", " f{}"},
  {llama,
   "{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", "
   "\"parameters\": {\"b\": []}}",
   " f{} g{\"b\": []}"},
  {llama, "{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}",
   " f{}"},
  {llama, "{\"a\": 1} is JSON", "{\"a\": 1} is JSON"},
  {llama, "{not json", "{not json"},
  {llama, "hello {\"name\": \"f\"}", "hello {\"name\": \"f\"}"},
  // [TOOL_CALLS]
  {mistral, "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}}]",
   " f{\"a\": 1}"},
  {mistral,
   "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}, \"id\": \"123456789\"}, "
   "{\"name\": \"g\", \"arguments\": {\"x\": \"]\"}}]",
   " f{} g{\"x\": \"]\"}"},
  {mistral, "[TOOL_CALLS]f{\"a\": 1}", " f{\"a\": 1}"},
  {mistral, "Well. [TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g[ARGS]{}",
   "Well. f{\"a\": 1} g{}"},
  {mistral, "[TOOL] x", "[TOOL] x"},
  {mistral, "[TOOL_CALLS] nothing here", "[TOOL_CALLS] nothing here"},
};

} // namespace

BOOST_DATA_TEST_CASE(pieces_make_no_difference, data::make(examples), e) {
  const std::string text = e.text;
  for (std::size_t size = 1; size <= text.size() + 1; ++size)
    for (std::size_t first = 0; first < std::min<std::size_t>(size, 3);
         ++first) {
      answer_parser parser(e.format, 7);
      answer_parser::piece all;
      if (first > 0)
        add(all, parser.push(text.substr(0, first)));
      for (std::size_t at = std::min(first, text.size()); at < text.size();
           at += size)
        add(all, parser.push(text.substr(at, size)));
      add(all, parser.finish());
      BOOST_TEST_REQUIRE(shown(all) == e.result,
                         "in pieces of " << size << ": " << shown(all));
      BOOST_TEST(parser.called() == !all.calls.empty());
    }
}

BOOST_AUTO_TEST_CASE(arguments_come_while_they_are_written) {
  answer_parser parser(hermes, 7);
  (void)parser.push("<tool_call>{\"name\": \"f\", \"argum");
  auto piece = parser.push("ents\": {\"city\": \"Ber");
  BOOST_REQUIRE(piece.calls.size() == 1u);
  BOOST_TEST(piece.calls[0].name == "f");
  BOOST_TEST(piece.calls[0].arguments == "{\"city\": \"Ber");
  const std::string id = piece.calls[0].id;
  piece = parser.push("lin\"");
  BOOST_REQUIRE(piece.calls.size() == 1u);
  BOOST_TEST(piece.calls[0].arguments == "lin\"");
  answer_parser again(hermes, 7);
  BOOST_TEST(
    again.push("<tool_call>{\"name\": \"f\", \"arguments\": {").calls[0].id
    == id);
}

BOOST_AUTO_TEST_CASE(a_head_without_end_is_content) {
  answer_parser parser(hermes, 7);
  std::string told;
  for (int i = 0; i < 1000; ++i)
    told += parser.push(i == 0 ? "<tool_call>{\"" : "0123456789").content;
  BOOST_TEST(told.size() > 9000u);
}

BOOST_AUTO_TEST_CASE(the_first_call_is_over_when_it_is_closed) {
  const std::pair<answer_format, std::string> calls[] = {
    {hermes, R"(Hm <tool_call>{"name":"f","arguments":{"a":{}}} </tool_call>)"},
    {hermes, R"(<tool_call>{"arguments": {"x": 1}, "name": "g"}</tool_call>)"},
    {llama, R"({"name": "f", "parameters": {"a": "}"}})"},
    {llama, R"(<|python_tag|>{"name": "f", "parameters": {}})"},
    {mistral, R"([TOOL_CALLS][{"name": "f", "arguments": {}})"},
    {mistral, R"([TOOL_CALLS]f{"a": "}"})"},
    {mistral, R"([TOOL_CALLS]f[ARGS]{"a": {}})"}};
  for (const auto& [format, text] : calls)
    BOOST_TEST_CONTEXT(text) {
      answer_parser parser(format, 1);
      for (const char c : text) {
        BOOST_TEST(!parser.first_call_over());
        static_cast<void>(parser.push({&c, 1}));
      }
      BOOST_TEST(parser.first_call_over());
    }
  answer_parser none(hermes, 1);
  static_cast<void>(none.push("Hm <tool_call>nothing</tool_call>"));
  BOOST_TEST(!none.first_call_over());
}

BOOST_AUTO_TEST_SUITE_END()
