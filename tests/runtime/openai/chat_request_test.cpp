// tests/runtime/openai/chat_request_test.cpp -- bodies of chats, and their mistakes
// by name.
#include "runtime/files/json.hpp"
#include "runtime/openai/chat_request.hpp"
#include "runtime/openai/completion_response.hpp"
#include "runtime/openai/token_requests.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>
#include <string>

BOOST_AUTO_TEST_SUITE(chat_requests)

using namespace shoal::openai;
namespace data = boost::unit_test::data;
using json = nlohmann::ordered_json;

namespace {

chat_request good(const std::string& body) {
  auto parsed = parse_chat(body);
  if (const auto* error = std::get_if<api_error>(&parsed))
    BOOST_FAIL(body + ": " + error->message);
  return std::get<chat_request>(parsed);
}

/// A body with a message and the given fields.
std::string with(const std::string& fields) {
  return R"({"messages":[{"role":"user","content":"a"}],)" + fields + "}";
}

json parsed_json(const std::string& text) {
  return shoal::model::parse_json<json>(text);
}

struct mistake {
  const char* body;
  const char* param;
  const char* code;
};
std::ostream& operator<<(std::ostream& out, const mistake& m) {
  return out << m.body;
}

const mistake mistakes[] = {
  {"{}", "messages", "missing_required_parameter"},
  {R"({"messages":null})", "messages", "missing_required_parameter"},
  {R"({"messages":{}})", "messages", "invalid_type"},
  {R"({"messages":[]})", "messages", "invalid_value"},
  {R"({"messages":[1]})", "messages[0]", "invalid_type"},
  {R"({"messages":[{}]})", "messages[0].role", "missing_required_parameter"},
  {R"({"messages":[{"role":1}]})", "messages[0].role", "invalid_type"},
  {R"({"messages":[{"role":"user","content":1}]})", "messages[0].content",
   "invalid_type"},
  {R"({"messages":[{"role":"user","content":[1]}]})", "messages[0].content[0]",
   "invalid_type"},
  {R"({"messages":[{"role":"user","content":[{"text":"a"}]}]})",
   "messages[0].content[0].type", "invalid_type"},
  {R"({"messages":[{"role":"user","content":[{"type":"input_audio"}]}]})",
   "messages[0].content[0].type", "unsupported_parameter"},
  {R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})",
   "messages[0].content[0].text", "invalid_type"},
  {R"({"messages":[{"role":"assistant","tool_calls":1}]})",
   "messages[0].tool_calls", "invalid_type"},
  {R"({"messages":[{"role":"assistant","tool_calls":[{}]}]})",
   "messages[0].tool_calls[0].function", "invalid_type"},
  {R"({"messages":[{"role":"assistant","tool_calls":[{"function":{}}]}]})",
   "messages[0].tool_calls[0].function.name", "invalid_type"},
  {R"({"messages":[{"role":"assistant","tool_calls":[{"function":
      {"name":"f","arguments":1}}]}]})",
   "messages[0].tool_calls[0].function.arguments", "invalid_type"},
};

const mistake fields_of[] = {
  {R"("tools":1)", "tools", "invalid_type"},
  {R"("tools":[{"type":"function"}])", "tools[0]", "invalid_type"},
  {R"("tools":[{"type":"function","function":{}}])", "tools[0].function.name",
   "invalid_type"},
  {R"("tool_choice":1)", "tool_choice", "invalid_type"},
  {R"("tool_choice":"required")", "tool_choice", "invalid_value"},
  {R"("tool_choice":"always")", "tool_choice", "invalid_value"},
  {R"("tool_choice":{"type":"function"})", "tool_choice.function.name",
   "invalid_type"},
  {R"("tool_choice":{"type":"function","function":{"name":"f"}})",
   "tool_choice", "invalid_value"},
  {R"("tool_choice":{"type":"custom"})", "tool_choice.type",
   "unsupported_parameter"},
  {R"("tool_choice":{"type":"allowed_tools"})", "tool_choice.allowed_tools",
   "invalid_type"},
  {R"("tools":[{"type":"function","function":{"name":"f","strict":1}}])",
   "tools[0].function.strict", "invalid_type"},
  {R"("tools":[{"type":"function","function":{"name":"f"}}],
      "tool_choice":"required","guided_regex":"a")",
   "tool_choice", "invalid_value"},
  {R"("min_tokens":-1)", "min_tokens", "invalid_value"},
  {R"("bad_words":"a")", "bad_words", "invalid_type"},
  {R"("bad_words":[""])", "bad_words", "invalid_value"},
  {R"("allowed_token_ids":[])", "allowed_token_ids", "invalid_value"},
  {R"("allowed_token_ids":[-1])", "allowed_token_ids", "invalid_type"},
  {R"("response_format":{"type":"json_schema"})", "response_format.json_schema",
   "invalid_type"},
  {R"("chat_template":"x")", "chat_template", "unsupported_parameter"},
  {R"("chat_template_kwargs":[])", "chat_template_kwargs", "invalid_type"},
  {R"("documents":{})", "documents", "invalid_type"},
  {R"("add_generation_prompt":1)", "add_generation_prompt", "invalid_type"},
  {R"("add_generation_prompt":true,"continue_final_message":true)",
   "continue_final_message", "invalid_value"},
  {R"("max_tokens":0)", "max_tokens", "invalid_value"},
  {R"("max_completion_tokens":"1")", "max_completion_tokens", "invalid_type"},
  {R"("logprobs":1)", "logprobs", "invalid_type"},
  {R"("top_logprobs":1)", "top_logprobs", "invalid_value"},
  {R"("logprobs":true,"top_logprobs":21)", "top_logprobs", "invalid_value"},
  {R"("stream_options":{"include_usage":true})", "stream_options",
   "invalid_value"},
};

} // namespace

BOOST_DATA_TEST_CASE(mistakes_of_messages_name_their_place,
                     data::make(mistakes), m) {
  const auto parsed = parse_chat(m.body);
  BOOST_REQUIRE(std::holds_alternative<api_error>(parsed));
  const auto& error = std::get<api_error>(parsed);
  BOOST_TEST(error.status == 400u);
  BOOST_TEST(error.param == m.param);
  BOOST_TEST(error.code == m.code);
}

BOOST_DATA_TEST_CASE(mistakes_name_their_field, data::make(fields_of), m) {
  const auto parsed = parse_chat(with(m.body));
  BOOST_REQUIRE(std::holds_alternative<api_error>(parsed));
  BOOST_TEST(std::get<api_error>(parsed).param == m.param);
  BOOST_TEST(std::get<api_error>(parsed).code == m.code);
}

BOOST_AUTO_TEST_CASE(what_is_given_is_kept) {
  const chat_request r = good(with(
    R"("model":"m","max_tokens":9,"max_completion_tokens":7,"logprobs":true,
    "top_logprobs":4,"tools":[{"type":"function","function":{"name":"f"}}],
    "chat_template_kwargs":{"enable_thinking":false},"reasoning_effort":"low",
    "documents":[{"a":1}],"frequency_penalty":-0.5,"presence_penalty":1,
    "logit_bias":{"3":-2.5},"stop_token_ids":[4],"unknown":[1],
    "parallel_tool_calls":true,"response_format":{"type":"text"})"));
  BOOST_TEST(r.model == "m");
  BOOST_TEST(r.max_tokens == 7u);
  BOOST_TEST(r.max_tokens_given);
  BOOST_TEST(r.logprobs.value() == 4u);
  BOOST_TEST(r.tools_allowed);
  BOOST_TEST(r.asked.tools.size() == 1u);
  BOOST_TEST(r.asked.variables["enable_thinking"] == false);
  BOOST_TEST(r.asked.variables["reasoning_effort"] == "low");
  BOOST_TEST(r.asked.documents.size() == 1u);
  BOOST_TEST(r.frequency_penalty.value() == -0.5f);
  BOOST_TEST(r.presence_penalty.value() == 1.0f);
  BOOST_REQUIRE(r.biases.size() == 1u);
  BOOST_TEST(r.biases[0].first == 3);
  BOOST_TEST(r.biases[0].second == -2.5f);
  BOOST_TEST(r.stop_token_ids.size() == 1u);
  const chat_request plain = good(with(R"("tools":[],"logprobs":false)"));
  BOOST_TEST(!plain.max_tokens_given);
  BOOST_TEST(!plain.logprobs);
  BOOST_TEST(!plain.tools_allowed);
  BOOST_TEST(plain.asked.tools.is_null());
  BOOST_TEST(plain.asked.add_generation_prompt);
}

BOOST_AUTO_TEST_CASE(messages_are_brought_into_one_form) {
  const chat_request r = good(
    R"({"messages":[{"role":"developer","content":["a",
    {"type":"text","text":"b"}],"name":"x"}, {"role":"assistant",
    "content":null}]})");
  BOOST_TEST(r.asked.messages[0]["role"] == "system");
  BOOST_TEST(r.asked.messages[0]["name"] == "x");
  BOOST_TEST(r.asked.messages[0]["content"].size() == 2u);
  BOOST_TEST(r.asked.messages[0]["content"][0]["text"] == "a");
  BOOST_TEST(r.asked.messages[1]["content"].is_null());
}

BOOST_AUTO_TEST_CASE(an_answer_has_messages) {
  completion_choice c;
  c.text = "hi";
  c.finish = finish_reason::stop;
  c.logprobs = logprobs{{listed_token{"hi"}, listed_token{"\xe2"}},
                        {-0.5f, -1.0f},
                        {logprobs::top{{{"hi"}, -0.5f}}, logprobs::top{}},
                        {0, 2}};
  c.prompt_token_ids = {3, 1};
  c.token_ids = {4, 5};
  const json whole = parsed_json(
    completion_json({"chatcmpl-1", 5, "m", {}, true}, {c}, {3, 2, {}}));
  BOOST_TEST(whole["prompt_token_ids"] == parsed_json("[3,1]"));
  BOOST_TEST(!whole["choices"][0].contains("prompt_token_ids"));
  BOOST_TEST(whole["choices"][0]["token_ids"] == parsed_json("[4,5]"));
  BOOST_TEST(whole["object"] == "chat.completion");
  const json& message = whole["choices"][0]["message"];
  BOOST_TEST(message["role"] == "assistant");
  BOOST_TEST(message["content"] == "hi");
  BOOST_TEST(!message.contains("tool_calls"));
  const json& content = whole["choices"][0]["logprobs"]["content"];
  BOOST_TEST(content[0]["bytes"] == parsed_json("[104,105]"));
  BOOST_TEST(content[0]["top_logprobs"][0]["logprob"] == -0.5);
  BOOST_TEST(content[1]["bytes"] == parsed_json("[226]"));
  BOOST_TEST(whole["usage"]["total_tokens"] == 5);
  c.logprobs.reset();
  c.begins = true;
  c.finish = finish_reason::none;
  const json chunk =
    parsed_json(chunk_json({"chatcmpl-1", 5, "m", {}, true}, {c}, true));
  BOOST_TEST(chunk["object"] == "chat.completion.chunk");
  BOOST_TEST(chunk["choices"][0]["delta"]["role"] == "assistant");
  BOOST_TEST(chunk["choices"][0]["finish_reason"].is_null());
  BOOST_TEST(chunk["usage"].is_null());
}

BOOST_AUTO_TEST_CASE(tokens_are_told_with_their_bytes_if_asked_for) {
  tokenize_request asked;
  const std::vector<token_id> ids{5, 6};
  const auto pieces = [](token_id id) -> std::string {
    return id == 5 ? " a" : "\xe2";
  };
  BOOST_TEST(tokenize_json(asked, ids, pieces, 9)
             == R"({"count":2,"max_model_len":9,"tokens":[5,6],)"
                R"("token_strs":null})");
  asked.with_pieces = asked.return_token_strs = true;
  BOOST_TEST(
    tokenize_json(asked, ids, pieces, 9)
    == R"({"count":2,"max_model_len":9,"tokens":[{"id":5,"piece":" a"},)"
       R"({"id":6,"piece":[226]}],"token_strs":[" a","bytes:\\xe2"]})");
}

BOOST_AUTO_TEST_CASE(tokens_are_asked_for_in_the_forms_of_others) {
  const auto one = [](const char* body) {
    auto parsed = parse_tokenize(body);
    BOOST_REQUIRE(std::holds_alternative<tokenize_request>(parsed));
    return std::get<tokenize_request>(parsed);
  };
  BOOST_TEST(std::get<std::string>(one(R"({"prompt":"a"})").from) == "a");
  BOOST_TEST(one(R"({"prompt":"a"})").add_special_tokens);
  BOOST_TEST(!one(R"({"content":"a"})").add_special_tokens);
  BOOST_TEST(one(R"({"content":"a","add_special":true})").add_special_tokens);
  BOOST_TEST(std::holds_alternative<conversation>(
    one(R"({"messages":[{"role":"user","content":"a"}]})").from));
  BOOST_TEST(!one(R"({"content":"a"})").with_pieces);
  BOOST_TEST(one(R"({"content":"a"})").parse_special);
  BOOST_TEST(one(R"({"content":"a","with_pieces":true})").with_pieces);
  BOOST_TEST(!one(R"({"content":"a","parse_special":false})").parse_special);
  for (
    const char* body :
    {"{}", R"({"prompt":1})", R"({"messages":[1]})",
     R"({"messages":[{"role":"user","content":"a"}],"parse_special":false})"})
    BOOST_TEST(std::holds_alternative<api_error>(parse_tokenize(body)));
  // Of two texts one would be ignored, whatever it is.
  const std::string talk = R"("messages":[{"role":"user","content":"a"}])";
  for (const std::string& two :
       {talk + R"(,"prompt":5)", talk + R"(,"content":"a")",
        std::string(R"("prompt":"a","content":"b")")}) {
    const auto parsed = parse_tokenize("{" + two + "}");
    BOOST_REQUIRE(std::holds_alternative<api_error>(parsed));
    BOOST_TEST(std::get<api_error>(parsed).message.find("together with")
               != std::string::npos);
  }
  for (const char* body : {"{}", R"({"tokens":"a"})", R"({"tokens":[-1]})"})
    BOOST_TEST(std::holds_alternative<api_error>(parse_detokenize(body)));
}

BOOST_AUTO_TEST_SUITE_END()
