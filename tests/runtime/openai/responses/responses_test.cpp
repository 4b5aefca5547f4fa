// tests/runtime/openai/responses/responses_test.cpp -- items become messages, and
// what a model answers becomes items again.
#include "runtime/files/json.hpp"
#include "runtime/openai/responses/responses_request.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace shoal::openai {
BOOST_AUTO_TEST_SUITE(responses)

namespace {

using json = nlohmann::ordered_json;

json parsed_json(const std::string& text) {
  return model::parse_json<json>(text);
}

std::string with(const std::string& more) {
  return R"({"model":"m","input":"hi")" + (more.empty() ? "" : "," + more)
         + "}";
}

responses_request good(const std::string& body) {
  auto parsed = parse_responses(body);
  if (const auto* wrong = std::get_if<api_error>(&parsed))
    BOOST_FAIL(wrong->message);
  return std::get<responses_request>(std::move(parsed));
}

std::string wrong_field(const std::string& body) {
  auto parsed = parse_responses(body);
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
      BOOST_TEST(all.back()["sequence_number"] == all.size() - 1);
      begin = end + 2;
    }
  }
  std::size_t count(const std::string& name) const {
    return std::size_t(std::ranges::count(names, "response." + name));
  }
  std::vector<std::string> names;
  std::vector<json> all;
};

completion_choice news() {
  completion_choice c;
  c.begins = true;
  return c;
}

} // namespace

BOOST_AUTO_TEST_CASE(fields_have_the_meaning_of_those_of_a_chat) {
  const responses_request r = good(with(
    R"("instructions":"be brief","max_output_tokens":7,"temperature":0.5,
       "top_p":0.25,"top_k":3,"stream":true,"stream_options":{"x":1},
       "include":["message.output_text.logprobs"],"top_logprobs":2,
       "reasoning":{"effort":"low"},"n":9,"max_tokens":99,"store":true,
       "tools":[{"type":"function","name":"f","parameters":{"a":1}}],
       "chat_template_kwargs":{"x":1},"user":"me","seed":4,
       "metadata":{"k":"v"})"));
  BOOST_TEST(r.model == "m");
  BOOST_TEST(r.asked.messages
             == parsed_json(R"([{"role":"system","content":"be brief"},
                                {"role":"user","content":"hi"}])"));
  BOOST_TEST(r.max_tokens == 7u);
  BOOST_TEST(r.max_tokens_given);
  BOOST_TEST(r.temperature.value() == 0.5f);
  BOOST_TEST(r.top_k.value() == 3u);
  BOOST_TEST(r.stream);
  BOOST_TEST(r.n == 1u);
  BOOST_TEST(r.logprobs.value() == 2u);
  BOOST_TEST(r.seed.value() == 4u);
  BOOST_TEST(r.asked.variables["reasoning_effort"] == "low");
  BOOST_TEST(r.asked.variables["x"] == 1);
  BOOST_TEST(r.tools_allowed);
  BOOST_TEST(r.asked.tools
             == parsed_json(R"([{"type":"function","function":{"name":"f",
                                 "parameters":{"a":1}}}])"));
  BOOST_TEST(r.repeated["metadata"]["k"] == "v");
  BOOST_TEST(r.repeated["tools"][0]["name"] == "f");
  BOOST_TEST(!good(with("")).max_tokens_given);
  BOOST_TEST(!good(with("")).logprobs);
  BOOST_TEST(!good(with(R"("tools":null,"metadata":null)")).tools_allowed);
}

BOOST_AUTO_TEST_CASE(items_become_messages) {
  const responses_request r = good(R"({"model":"m","input":[
    {"role":"developer","content":[{"type":"input_text","text":"a"}]},
    {"role":"user","content":"b"},
    {"type":"reasoning","id":"r","summary":[],
     "content":[{"type":"reasoning_text","text":"hm"}]},
    {"type":"message","role":"assistant","id":"x","status":"completed",
     "content":[{"type":"output_text","text":"c","annotations":[]}]},
    {"type":"function_call","call_id":"1","name":"f","arguments":"{}"},
    {"type":"function_call","call_id":"2","name":"g","arguments":"{\"z\":1}"},
    {"type":"function_call_output","call_id":"2","output":"d"},
    {"type":"reasoning","summary":[],"encrypted_content":"?"},
    {"type":"function_call","call_id":"3","name":"f","arguments":"{}"}]})");
  BOOST_TEST(r.asked.messages == parsed_json(R"([
    {"role":"system","content":[{"type":"text","text":"a"}]},
    {"role":"user","content":"b"},
    {"role":"assistant","content":[{"type":"text","text":"c"}],
     "reasoning_content":"hm","tool_calls":[
      {"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},
      {"id":"2","type":"function",
       "function":{"name":"g","arguments":"{\"z\":1}"}}]},
    {"role":"tool","tool_call_id":"2","name":"g","content":"d"},
    {"role":"assistant","content":"","tool_calls":[
      {"id":"3","type":"function","function":{"name":"f","arguments":"{}"}}]}
    ])"));
}

BOOST_AUTO_TEST_CASE(mistakes_name_the_field_of_this_api) {
  for (const auto& [more, field] :
       std::vector<std::pair<std::string, std::string>>{
         {R"("previous_response_id":"r")", "previous_response_id"},
         {R"("conversation":{})", "conversation"},
         {R"("prompt":{"id":"p"})", "prompt"},
         {R"("background":true)", "background"},
         {R"("background":1)", "background"},
         {R"("store":1)", "store"},
         {R"("truncation":"auto")", "truncation"},
         {R"("instructions":[])", "instructions"},
         {R"("max_output_tokens":0)", "max_output_tokens"},
         {R"("max_output_tokens":"1")", "max_output_tokens"},
         {R"("temperature":"1")", "temperature"},
         {R"("reasoning":1)", "reasoning"},
         {R"("reasoning":{"effort":1})", "reasoning.effort"},
         {R"("text":1)", "text"},
         {R"("text":{"format":1})", "text.format"},
         {R"("include":[1])", "include"},
         {R"("top_logprobs":21)", "top_logprobs"},
         {R"("tools":{})", "tools"},
         {R"("tools":[1])", "tools[0]"},
         {R"("tools":[{"type":"mcp"}])", "tools[0].type"},
         {R"("tools":[{"type":"function","name":1}])", "tools[0].name"},
         {R"("tool_choice":{"type":"mcp"})", "tool_choice"},
         {R"("tool_choice":"required")", "tool_choice"},
         {R"("tool_choice":{"type":"function","name":"f"})", "tool_choice"},
         {R"("tool_choice":{"type":"allowed_tools","tools":[]})",
          "tool_choice.allowed_tools.tools"},
         {R"("tool_choice":1)", "tool_choice"},
         {R"("stream_options":1)", "stream_options"},
         {R"("metadata":{"a":1})", "metadata"},
         {R"("metadata":{"a":")" + std::string(513, 'x') + "\"}", "metadata"}})
    BOOST_TEST(wrong_field(with(more)) == field);
  for (const auto& [input, field] :
       std::vector<std::pair<std::string, std::string>>{
         {"null", "input"},
         {"[]", "input"},
         {"1", "input"},
         {"[1]", "input[0]"},
         {R"([{"role":"user","content":"a"},{"type":1}])", "input[1].type"},
         {R"([{"type":"else"}])", "input[0].type"},
         {R"([{"type":"item_reference","id":"x"}])", "input[0].type"},
         {R"([{"content":"a"}])", "input[0].role"},
         {R"([{"role":"user"}])", "input[0].content"},
         {R"([{"role":"user","content":null}])", "input[0].content"},
         {R"([{"role":"user","content":[1]}])", "input[0].content[0]"},
         {R"([{"role":"user","content":[{"type":"input_image"}]}])",
          "input[0].content[0].type"},
         {R"([{"role":"user","content":[{"type":"input_text"}]}])",
          "input[0].content[0].text"},
         {R"([{"type":"function_call","call_id":"1","name":"f"}])",
          "input[0].arguments"},
         {R"([{"type":"function_call_output","output":"f"}])",
          "input[0].call_id"},
         {R"([{"type":"reasoning","content":1}])", "input[0].content"}})
    BOOST_TEST(wrong_field(R"({"model":"m","input":)" + input + "}") == field);
  BOOST_TEST(wrong_field(with(R"("text":{"format":{"type":"else"}})"))
               .starts_with("text.format"));
  responses_limits few;
  few.messages_max = 1;
  auto parsed = parse_responses(
    R"({"input":[{"role":"user","content":"a"},{"role":"user","content":"b"}]})",
    few);
  BOOST_TEST(std::get<api_error>(parsed).param == "input");
}

/// Thoughts, a text and two calls, in pieces: a stream, and the same at once.
BOOST_AUTO_TEST_CASE(an_answer_becomes_items) {
  const auto writer = make_writer(good(with(R"("temperature":0.5)")));
  writer->set_head({"7", 5, "m", 1});
  usage used{3, 9, std::nullopt, 2};
  std::string text = writer->event(news(), used, {});
  for (const char* thought : {"h", "m"}) {
    completion_choice c;
    c.reasoning = thought;
    text += writer->event(c, used, {});
  }
  completion_choice c;
  c.text = "Look";
  c.logprobs = logprobs{{{"Look"}},
                        {-0.5f},
                        {logprobs::top{{{"Look"}, -0.5f}, {{"x"}, -1.f}}},
                        {0}};
  text += writer->event(c, used, {});
  completion_choice first, more, last;
  first.calls = {{0, "call_a", "f", ""}};
  more.calls = {{0, "", "", R"({"x":)"}, {0, "", "", "1}"}};
  last.calls = {{1, "call_b", "g", "{}"}};
  last.finish = finish_reason::tool_calls;
  text += writer->event(first, used, {});
  text += writer->event(more, used, {});
  text += writer->event(completion_choice(), used, {}); // nothing to tell
  text += writer->event(last, used, {});
  text += writer->end(used, {});
  const events told(text);
  BOOST_TEST(told.names.front() == "response.created");
  BOOST_TEST(told.names[1] == "response.in_progress");
  BOOST_TEST(told.names.back() == "response.completed");
  BOOST_TEST(told.count("output_item.added") == 4u);
  BOOST_TEST(told.count("output_item.done") == 4u);
  BOOST_TEST(told.count("content_part.done") == 2u);
  BOOST_TEST(told.count("reasoning_text.delta") == 2u);
  BOOST_TEST(told.count("reasoning_text.done") == 1u);
  BOOST_TEST(told.count("output_text.delta") == 1u);
  BOOST_TEST(told.count("function_call_arguments.delta") == 3u);
  BOOST_TEST(told.count("function_call_arguments.done") == 2u);
  const json& response = told.all.back()["response"];
  BOOST_TEST(response["id"] == "resp_7");
  BOOST_TEST(response["status"] == "completed");
  BOOST_TEST(response["system_fingerprint"] == "step-1");
  BOOST_TEST(response["temperature"] == 0.5);
  BOOST_TEST(response["usage"]["total_tokens"] == 12);
  BOOST_TEST(response["usage"]["output_tokens_details"]["reasoning_tokens"]
             == 2);
  const json& output = response["output"];
  BOOST_REQUIRE(output.size() == 4u);
  BOOST_TEST(output[0]["content"][0]["text"] == "hm");
  BOOST_TEST(output[1]["content"][0]["text"] == "Look");
  BOOST_TEST(output[1]["content"][0]["logprobs"][0]["logprob"] == -0.5);
  BOOST_TEST(output[2]["arguments"] == R"({"x":1})");
  BOOST_TEST(output[2]["call_id"] == "call_a");
  BOOST_TEST(output[3]["name"] == "g");
  for (const json& event : told.all)
    if (event.contains("item_id"))
      BOOST_TEST(event["item_id"]
                 == output[event["output_index"].get<std::size_t>()]["id"]);

  const auto at_once = make_writer(good(with(R"("temperature":0.5)")));
  at_once->set_head({"7", 5, "m", 1});
  completion_choice all = c;
  all.reasoning = "hm";
  all.calls = {{0, "call_a", "f", R"({"x":1})"}, {1, "call_b", "g", "{}"}};
  all.finish = finish_reason::tool_calls;
  BOOST_TEST(parsed_json(at_once->whole({all}, used)) == response);
}

/// The text ended the call too early, whose last part began another one.
BOOST_AUTO_TEST_CASE(a_call_that_goes_on_precedes_the_text_of_its_event) {
  const auto writer = make_writer(good(with(R"("stream":true)")));
  writer->set_head({"7", 5, "m", {}});
  completion_choice first, both;
  first.calls = {{0, "call_a", "f", R"({"x":)"}};
  both.calls = {{0, "", "", "1}"}, {1, "call_b", "g", "{}"}};
  both.text = "Then";
  both.finish = finish_reason::tool_calls;
  std::string all = writer->event(first, {}, {});
  all += writer->event(both, {}, {});
  all += writer->end({}, {});
  const events told(all);
  const json& output = told.all.back()["response"]["output"];
  BOOST_REQUIRE(output.size() == 3u);
  BOOST_TEST(output[0]["arguments"] == R"({"x":1})");
  BOOST_TEST(output[1]["content"][0]["text"] == "Then");
  BOOST_TEST(output[2]["call_id"] == "call_b");
}

BOOST_AUTO_TEST_CASE(an_end_has_its_reason) {
  const usage used{3, 9, std::nullopt, 0};
  for (const bool cut : {false, true}) {
    const auto writer = make_writer(good(with("")));
    writer->set_head({"7", 5, "m", {}});
    completion_choice c = news();
    c.finish = cut ? finish_reason::length : finish_reason::stop;
    const json whole = parsed_json(writer->whole({c}, used));
    BOOST_TEST(whole["status"] == (cut ? "incomplete" : "completed"));
    BOOST_TEST(whole["incomplete_details"].is_null() == !cut);
    BOOST_TEST(whole["output"].size() == 1u);
    BOOST_TEST(whole["output"][0]["content"][0]["text"] == "");
  }
  const auto writer = make_writer(good(with("")));
  writer->set_head({"7", 5, "m", {}});
  std::string text = writer->event(news(), used, {});
  text += writer->error(server_error("gone"));
  const events told(text);
  BOOST_TEST(told.names.back() == "response.failed");
  BOOST_TEST(told.all.back()["response"]["status"] == "failed");
  BOOST_TEST(told.all.back()["response"]["error"]["message"] == "gone");
}

/// Parts of a character come before its text, and the token that ends a text has none.
BOOST_AUTO_TEST_CASE(tokens_without_text_of_their_own_are_told) {
  const auto writer = make_writer(good(with(R"("stream":true)")));
  writer->set_head({"7", 5, "m", {}, true});
  const auto told_of = [&](std::string text, std::string bytes, bool last) {
    completion_choice c;
    c.text = std::move(text);
    c.logprobs =
      logprobs{{listed_token{std::move(bytes)}}, {-0.5f}, {std::nullopt}, {0}};
    if (last)
      c.finish = finish_reason::stop;
    return writer->event(c, {}, {});
  };
  std::string text = told_of("a", "a", false);
  text += told_of("", "\xc3", false);
  text += told_of("\u00e9", "\xa9", false);
  text += told_of("", "</s>", true);
  text += writer->end({}, {});
  const events told(text);
  std::vector<std::size_t> each;
  for (const json& event : told.all)
    if (event["type"] == "response.output_text.delta")
      each.push_back(event["logprobs"].size());
  BOOST_TEST((each == std::vector<std::size_t>{1, 2, 1}));
  const json& output = told.all.back()["response"]["output"];
  BOOST_TEST(output[0]["content"][0]["logprobs"].size() == 4u);
}

/// Before a message there may be white space that is left out, and parts of its
/// first character; and a call has tokens, too.
BOOST_AUTO_TEST_CASE(a_message_has_the_tokens_of_its_text) {
  const auto writer = make_writer(good(with(R"("stream":true)")));
  writer->set_head({"7", 5, "m", {}, true});
  const auto told_of = [&](std::string text, std::string bytes,
                           std::vector<tool_call> calls = {}) {
    completion_choice c;
    c.text = std::move(text);
    c.calls = std::move(calls);
    c.logprobs =
      logprobs{{listed_token{std::move(bytes)}}, {-0.5f}, {std::nullopt}, {0}};
    return writer->event(c, {}, {});
  };
  std::string text = told_of("", "\n");
  text += told_of("", "\xc3");
  text += told_of("\u00e9", "\xa9");
  text += told_of("", "<tool_call>");
  text += told_of("", "{}", {{0, "id", "f", "{}"}});
  text += told_of("", "</tool_call>");
  text += told_of("b", "b");
  text += writer->end({}, {});
  const events told(text);
  std::vector<std::string> each;
  for (const json& event : told.all)
    if (event["type"] == "response.output_text.delta")
      for (const json& token : event["logprobs"])
        each.push_back(token["token"]);
  BOOST_TEST(
    (each == std::vector<std::string>{"bytes:\\xc3", "bytes:\\xa9", "b"}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::openai
