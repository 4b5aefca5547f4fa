// tests/runtime/anthropic/messages_test.cpp -- blocks become messages, and what a
// model answers becomes blocks again.
#include "runtime/anthropic/error_text.hpp"
#include "runtime/anthropic/messages_request.hpp"
#include "runtime/files/json.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace shoal::anthropic {
BOOST_AUTO_TEST_SUITE(messages)

namespace {

using json = nlohmann::ordered_json;
using openai::api_error;
using openai::completion_choice;
using openai::finish_reason;
using openai::usage;

json parsed_json(const std::string& text) {
  return model::parse_json<json>(text);
}

std::string with(const std::string& more) {
  return R"({"model":"m","max_tokens":5,"messages":[{"role":"user",)"
         R"("content":"hi"}])"
         + (more.empty() ? "" : "," + more) + "}";
}

messages_request good(const std::string& body) {
  auto parsed = parse_messages(body);
  if (const auto* wrong = std::get_if<api_error>(&parsed))
    BOOST_FAIL(wrong->message);
  return std::get<messages_request>(std::move(parsed));
}

std::string wrong_field(const std::string& body) {
  auto parsed = parse_messages(body);
  BOOST_REQUIRE_MESSAGE(std::holds_alternative<api_error>(parsed), body);
  const auto& error = std::get<api_error>(parsed);
  BOOST_TEST(error.status == 400u);
  return error.param;
}

/// The events of a stream, with their names.
struct events {
  explicit events(const std::string& text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t line = text.find("\ndata: ", begin);
      const std::size_t end = text.find("\n\n", line);
      BOOST_REQUIRE(end != text.npos);
      const std::size_t name = begin + std::string("event: ").size();
      names.push_back(text.substr(name, line - name));
      all.push_back(parsed_json(text.substr(line + 7, end - line - 7)));
      BOOST_TEST(all.back()["type"] == names.back());
      begin = end + 2;
    }
  }
  std::vector<std::string> names;
  std::vector<json> all;
};

} // namespace

BOOST_AUTO_TEST_CASE(fields_have_the_meaning_of_those_of_a_chat) {
  const messages_request r = good(with(
    R"("system":[{"type":"text","text":"be brief","cache_control":{}}],
       "temperature":0.5,"top_p":0.25,"top_k":3,"stream":true,"n":9,
       "stop_sequences":["a","b"],"metadata":{"user_id":"me"},"min_p":0.5,
       "thinking":{"type":"enabled","budget_tokens":1024},
       "output_config":{"effort":"low"},"no_such_field":1,
       "tools":[{"name":"f","description":"d","input_schema":{"a":1}}],
       "tool_choice":{"type":"auto"})"));
  BOOST_TEST(r.asked.messages == parsed_json(R"([
    {"role":"system","content":[{"type":"text","text":"be brief"}]},
    {"role":"user","content":"hi"}])"));
  BOOST_TEST(r.max_tokens == 5u);
  BOOST_TEST(r.max_tokens_given);
  BOOST_TEST(r.top_k.value() == 3u);
  BOOST_TEST(r.min_p.value() == 0.5f);
  BOOST_TEST(r.stream);
  BOOST_TEST(r.n == 1u);
  BOOST_TEST((r.stop == std::vector<std::string>{"a", "b"}));
  BOOST_TEST(r.user == "me");
  BOOST_TEST(r.asked.variables["enable_thinking"] == true);
  BOOST_TEST(r.asked.variables["reasoning_effort"] == "low");
  BOOST_TEST(r.tools_allowed);
  BOOST_TEST(r.asked.tools == parsed_json(R"([{"type":"function","function":
      {"name":"f","description":"d","parameters":{"a":1}}}])"));
  BOOST_TEST(r.asked.add_generation_prompt);
  const auto off = good(with(R"("thinking":{"type":"disabled"})"));
  BOOST_TEST(off.asked.variables["enable_thinking"] == false);
  BOOST_TEST(!good(with("")).asked.variables.contains("enable_thinking"));
}

BOOST_AUTO_TEST_CASE(blocks_become_messages) {
  const messages_request r = good(R"({"model":"m","max_tokens":1,"system":"s",
    "messages":[
    {"role":"user","content":[{"type":"text","text":"a"},
                              {"type":"text","text":"b"}]},
    {"role":"assistant","content":[
      {"type":"thinking","thinking":"hm","signature":""},
      {"type":"redacted_thinking","data":"?"},
      {"type":"text","text":"c"},
      {"type":"tool_use","id":"1","name":"f","input":{"z":1}},
      {"type":"tool_use","id":"2","name":"g","input":{}}]},
    {"role":"user","content":[
      {"type":"tool_result","tool_use_id":"2","content":"d"},
      {"type":"tool_result","tool_use_id":"1","is_error":true,
       "content":[{"type":"text","text":"e"}]},
      {"type":"tool_result","tool_use_id":"3"},
      {"type":"text","text":"f"}]}]})");
  BOOST_TEST(r.asked.messages == parsed_json(R"([
    {"role":"system","content":"s"},
    {"role":"user","content":[{"type":"text","text":"a"},
                              {"type":"text","text":"b"}]},
    {"role":"assistant","content":[{"type":"text","text":"c"}],
     "reasoning_content":"hm","tool_calls":[
      {"id":"1","type":"function",
       "function":{"name":"f","arguments":{"z":1}}},
      {"id":"2","type":"function","function":{"name":"g","arguments":{}}}]},
    {"role":"tool","tool_call_id":"2","name":"g","content":"d"},
    {"role":"tool","tool_call_id":"1","name":"f",
     "content":[{"type":"text","text":"e"}]},
    {"role":"tool","tool_call_id":"3","content":""},
    {"role":"user","content":[{"type":"text","text":"f"}]}])"));
}

BOOST_AUTO_TEST_CASE(an_answer_that_has_begun_is_continued) {
  const auto last = [](const std::string& content) {
    return good(R"({"model":"m","max_tokens":1,"messages":[)"
                R"({"role":"user","content":"a"},)"
                R"({"role":"assistant","content":)"
                + content + "}]}")
      .asked;
  };
  BOOST_TEST(last("\"so\"").continue_final_message);
  BOOST_TEST(!last("\"so\"").add_generation_prompt);
  BOOST_TEST(!last("\"\"").continue_final_message);
  BOOST_TEST(!last(R"([{"type":"tool_use","id":"1","name":"f","input":{}}])")
                .continue_final_message);
}

BOOST_AUTO_TEST_CASE(mistakes_name_the_field_of_this_api) {
  for (const auto& [more, field] :
       std::vector<std::pair<std::string, std::string>>{
         {R"("max_tokens":0)", "max_tokens"},
         {R"("max_tokens":"1")", "max_tokens"},
         {R"("max_tokens":null)", "max_tokens"},
         {R"("temperature":"1")", "temperature"},
         {R"("stream":1)", "stream"},
         {R"("stop_sequences":"a")", "stop_sequences"},
         {R"("stop_sequences":[""])", "stop_sequences"},
         {R"("system":1)", "system"},
         {R"("system":[{"type":"image"}])", "system[0].type"},
         {R"("thinking":1)", "thinking"},
         {R"("thinking":{"type":"x"})", "thinking.type"},
         {R"("metadata":1)", "metadata"},
         {R"("metadata":{"user_id":1})", "metadata.user_id"},
         {R"("output_config":1)", "output_config"},
         {R"("output_config":{"effort":1})", "output_config.effort"},
         {R"("output_config":{"format":{"type":"x"}})", "output_config.format"},
         {R"("tools":1)", "tools"},
         {R"("tools":[1])", "tools[0]"},
         {R"("tools":[{"type":"web_search_20250305"}])", "tools[0].type"},
         {R"("tools":[{"input_schema":{}}])", "tools[0].name"},
         {R"("tools":[{"name":"f"}])", "tools[0].input_schema"},
         {R"("tool_choice":"auto")", "tool_choice"},
         {R"("tool_choice":{"type":"any"})", "tool_choice"},
         {R"("tool_choice":{"type":"tool","name":"f"})", "tool_choice"},
         {R"("tool_choice":{"type":"tool"})", "tool_choice"}}) {
    // Of two fields of a name the last one counts.
    BOOST_TEST(wrong_field(with(more)) == field);
  }
  for (const auto& [messages, field] :
       std::vector<std::pair<std::string, std::string>>{
         {"null", "messages"},
         {"[]", "messages"},
         {"[1]", "messages[0]"},
         {R"([{"content":"a"}])", "messages[0].role"},
         {R"([{"role":"tool","content":"a"}])", "messages[0].role"},
         {R"([{"role":"user"}])", "messages[0].content"},
         {R"([{"role":"user","content":1}])", "messages[0].content"},
         {R"([{"role":"user","content":[1]}])", "messages[0].content[0]"},
         {R"([{"role":"user","content":[{"type":"image"}]}])",
          "messages[0].content[0].type"},
         {R"([{"role":"user","content":[{"type":"tool_use"}]}])",
          "messages[0].content[0].type"},
         {R"([{"role":"user","content":[{"type":"tool_result"}]}])",
          "messages[0].content[0].tool_use_id"},
         {R"([{"role":"assistant","content":[{"type":"tool_use","id":"1",
              "name":"f","input":"{}"}]}])",
          "messages[0].content[0].input"}})
    BOOST_TEST(
      wrong_field(R"({"model":"m","max_tokens":5,"messages":)" + messages + "}")
      == field);
  const std::string body =
    R"({"model":"m","messages":[{"role":"user","content":"a"}]})";
  BOOST_TEST(wrong_field(body) == "max_tokens");
  BOOST_TEST(
    std::holds_alternative<messages_request>(parse_count_tokens(body)));
}

/// Thoughts, a text and two calls, in pieces: a stream, and the same at once.
BOOST_AUTO_TEST_CASE(an_answer_becomes_blocks) {
  const auto writer = make_writer(good(with("")));
  writer->set_head({"7", 5, "m", {}});
  const usage used{3, 9, std::nullopt, 0};
  completion_choice begin, thought, text, first, more, last;
  begin.begins = true;
  thought.reasoning = "hm";
  text.text = "Look";
  first.calls = {{0, "call_a", "f", ""}};
  more.calls = {{0, "", "", R"({"x":)"}, {0, "", "", "1}"}};
  last.calls = {{1, "call_b", "g", "{"}};
  last.finish = finish_reason::tool_calls;
  std::string all;
  for (const auto& news :
       {begin, thought, thought, text, begin, first, more, last})
    all += writer->event(news, used, {});
  all += writer->end(used, {});
  const events told(all);
  BOOST_TEST(told.names.front() == "message_start");
  BOOST_TEST(told.names.back() == "message_stop");
  const auto count = [&](const char* name) {
    return std::ranges::count(told.names, name);
  };
  BOOST_TEST(count("content_block_start") == 4);
  BOOST_TEST(count("content_block_delta") == 6);
  BOOST_TEST(count("content_block_stop") == 4);
  const json& start = told.all.front()["message"];
  BOOST_TEST(start["id"] == "msg_7");
  BOOST_TEST(start["content"].empty());
  BOOST_TEST(start["stop_reason"].is_null());
  BOOST_TEST(start["usage"]["input_tokens"] == 3);
  const json& ended = told.all[told.all.size() - 2];
  BOOST_TEST(ended["delta"]["stop_reason"] == "tool_use");
  BOOST_TEST(ended["usage"]["output_tokens"] == 9);
  std::string arguments;
  for (const json& event : told.all)
    if (event["type"] == "content_block_delta" && event["index"] == 2)
      arguments += event["delta"]["partial_json"].get<std::string>();
  BOOST_TEST(arguments == R"({"x":1})");

  const auto at_once = make_writer(good(with("")));
  at_once->set_head({"7", 5, "m", {}});
  completion_choice whole = text;
  whole.reasoning = "hm";
  whole.calls = {{0, "call_a", "f", R"({"x":1})"}, {1, "call_b", "g", "{"}};
  whole.finish = finish_reason::tool_calls;
  const json message = parsed_json(at_once->whole({whole}, used));
  BOOST_TEST(message["content"] == parsed_json(R"([
    {"type":"thinking","thinking":"hm","signature":""},
    {"type":"text","text":"Look"},
    {"type":"tool_use","id":"call_a","name":"f","input":{"x":1}},
    {"type":"tool_use","id":"call_b","name":"g","input":{}}])"));
  BOOST_TEST(message["stop_reason"] == "tool_use");
}

/// The text ended the call too early, whose last part began another one.
BOOST_AUTO_TEST_CASE(a_call_that_goes_on_precedes_the_text_of_its_event) {
  const auto writer = make_writer(good(with("")));
  writer->set_head({"7", 5, "m", {}});
  completion_choice first, both;
  first.calls = {{0, "call_a", "f", R"({"x":)"}};
  both.calls = {{0, "", "", "1}"}, {1, "call_b", "g", "{}"}};
  both.text = "Then";
  both.finish = finish_reason::tool_calls;
  std::string all = writer->event(first, {}, {});
  all += writer->event(both, {}, {});
  all += writer->end({}, {});
  std::string told;
  for (const json& event : events(all).all)
    if (event["type"] == "content_block_start")
      told += event["content_block"]["type"].get<std::string>() + " ";
    else if (event["type"] == "content_block_delta")
      told += event["delta"].dump() + " ";
  BOOST_TEST(
    told
    == R"(tool_use {"type":"input_json_delta","partial_json":"{\"x\":"} )"
       R"({"type":"input_json_delta","partial_json":"1}"} )"
       R"(text {"type":"text_delta","text":"Then"} )"
       R"(tool_use {"type":"input_json_delta","partial_json":"{}"} )");
}

BOOST_AUTO_TEST_CASE(an_end_has_its_reason) {
  const auto ended = [](finish_reason why, const std::string& by) {
    const auto writer = make_writer(good(with("")));
    writer->set_head({"7", 5, "m", {}});
    completion_choice c;
    c.text = "a";
    c.finish = why;
    c.stopped_by = by;
    const json m = parsed_json(writer->whole({c}, {}));
    return m["stop_reason"].get<std::string>() + ":"
           + m["stop_sequence"].dump();
  };
  BOOST_TEST(ended(finish_reason::stop, "") == "end_turn:null");
  BOOST_TEST(ended(finish_reason::stop, "x") == "stop_sequence:\"x\"");
  BOOST_TEST(ended(finish_reason::length, "") == "max_tokens:null");
  const events told(
    make_writer(good(with("")))->error(openai::server_error("gone")));
  BOOST_TEST(told.names.back() == "error");
  BOOST_TEST(told.all.back()["error"]["type"] == "api_error");
}

BOOST_AUTO_TEST_CASE(errors_have_types_by_their_status) {
  const auto type = [](const api_error& error) {
    const json object = parsed_json(anthropic::error_json(error));
    BOOST_TEST(object["type"] == "error");
    BOOST_TEST(object["error"]["message"] == error.message);
    return object["error"]["type"].get<std::string>();
  };
  BOOST_TEST(type(openai::invalid_request("x")) == "invalid_request_error");
  BOOST_TEST(type(openai::invalid_api_key("x")) == "authentication_error");
  BOOST_TEST(type(openai::model_not_found("x")) == "not_found_error");
  BOOST_TEST(type(openai::rate_limited("x", 1)) == "rate_limit_error");
  BOOST_TEST(type(openai::server_error("x")) == "api_error");
  BOOST_TEST(type(openai::unavailable("x", 1)) == "overloaded_error");
  BOOST_TEST(parsed_json(anthropic::error_json(
               openai::invalid_request("x", "y")))["error"]["param"]
             == "y");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::anthropic
