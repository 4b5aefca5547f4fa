// tests/runtime/openai/completion_response_test.cpp -- answers, byte by byte.
#include "runtime/files/json.hpp"
#include "runtime/openai/completion_response.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

BOOST_AUTO_TEST_SUITE(completion_responses)

using namespace shoal::openai;

namespace {

const completion_head head{"cmpl-1", 1700000000, "tiny", {}};

completion_choice
choice(std::string text, finish_reason finish = finish_reason::none) {
  return {.index = 0,
          .text = std::move(text),
          .reasoning = {},
          .calls = {},
          .logprobs = std::nullopt,
          .finish = finish,
          .prompt_token_ids = std::nullopt,
          .token_ids = std::nullopt};
}

} // namespace

BOOST_AUTO_TEST_CASE(a_completion_has_choices_and_usage) {
  auto second = choice("b", finish_reason::length);
  second.index = 1;
  BOOST_TEST(
    completion_json(head, {choice("a\n", finish_reason::stop), second},
                    {5, 7, std::nullopt})
    == R"({"id":"cmpl-1","object":"text_completion","created":1700000000,)"
       R"("model":"tiny","choices":[)"
       R"({"index":0,"text":"a\n","logprobs":null,"finish_reason":"stop"},)"
       R"({"index":1,"text":"b","logprobs":null,"finish_reason":"length"}],)"
       R"("usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}})");
}

BOOST_AUTO_TEST_CASE(a_fingerprint_and_cached_tokens_are_told_if_known) {
  auto with = head;
  with.step = 900;
  const auto text = completion_json(with, {}, {5, 0, 4});
  BOOST_TEST(text.find(R"("system_fingerprint":"step-900")") != text.npos);
  BOOST_TEST(text.find(R"("prompt_tokens_details":{"cached_tokens":4})")
             != text.npos);
}

BOOST_AUTO_TEST_CASE(a_chunk_has_usage_only_if_asked) {
  const std::string begin =
    R"({"id":"cmpl-1","object":"text_completion","created":1700000000,)"
    R"("model":"tiny","choices":[)";
  BOOST_TEST(
    chunk_json(head, {choice("x")}, false)
    == begin
         + R"({"index":0,"text":"x","logprobs":null,"finish_reason":null}]})");
  BOOST_TEST(
    chunk_json(head, {choice("x")}, true)
    == begin
         + R"({"index":0,"text":"x","logprobs":null,"finish_reason":null}],)"
           R"("usage":null})");
  BOOST_TEST(usage_chunk_json(head, {1, 2, std::nullopt})
             == begin
                  + R"(],"usage":{"prompt_tokens":1,"completion_tokens":2,)"
                    R"("total_tokens":3}})");
}

BOOST_AUTO_TEST_CASE(a_choice_has_token_ids_if_they_are_asked_for) {
  auto with = choice("x");
  with.prompt_token_ids = {3, 1};
  with.token_ids = {120};
  const std::string text = chunk_json(head, {with}, false);
  BOOST_TEST(
    text.find(
      R"("finish_reason":null,"prompt_token_ids":[3,1],"token_ids":[120]})")
    != text.npos);
}

BOOST_AUTO_TEST_CASE(logprobs_are_four_lists) {
  auto c = choice("ab");
  logprobs l;
  l.tokens = {listed_token{"a"}, listed_token{"b"}};
  l.token_logprobs = {std::nullopt, -0.1f};
  l.top_logprobs = {std::nullopt,
                    logprobs::top{{{"b"}, -0.1f}, {{"c"}, -2.5f}}};
  l.text_offset = {0, 1};
  c.logprobs = l;
  const auto text = chunk_json(head, {c}, false);
  const std::string expected =
    R"("logprobs":{"tokens":["a","b"],"token_logprobs":[null,-0.1],)"
    R"("top_logprobs":[null,{"b":-0.1,"c":-2.5}],"text_offset":[0,1]})";
  BOOST_TEST(text.find(expected) != text.npos, text);
}

BOOST_AUTO_TEST_CASE(logprobs_that_json_lacks_become_its_least) {
  auto c = choice("a");
  logprobs l;
  const float infinite = -std::numeric_limits<float>::infinity();
  l.tokens = std::vector(3, listed_token{"a"});
  l.token_logprobs = {infinite, std::nanf(""), -1e30f};
  l.top_logprobs = {logprobs::top{{{"same"}, -1.0f}, {{"same"}, -2.0f}},
                    std::nullopt, logprobs::top{}};
  l.text_offset = {0, 0, 0};
  c.logprobs = l;
  const auto text = chunk_json(head, {c}, false);
  BOOST_TEST(text.find(R"("token_logprobs":[-9999.0,-9999.0,-9999.0])")
               != text.npos,
             text);
  BOOST_TEST(
    text.find(R"("top_logprobs":[{"same":-1.0},null,{}])") != text.npos, text);
}

BOOST_AUTO_TEST_CASE(an_event_is_an_id_and_one_line_of_data) {
  BOOST_TEST(sse_event("{}", {7, {}}) == "id: 7\ndata: {}\n\n");
  BOOST_TEST(sse_event("{}") == "data: {}\n\n");
  BOOST_TEST(sse_done == "data: [DONE]\n\n");
  // Line ends of a text must not end the event.
  const auto json =
    chunk_json(head, {choice("a\r\nb\n\n\xe2\x80\xa8\x01\xff")}, false);
  BOOST_TEST(json.find_first_of("\r\n") == json.npos);
  BOOST_TEST(json.find("a\\r\\nb\\n\\n\\u2028\\u0001\xef\xbf\xbd") != json.npos,
             json);
}

BOOST_AUTO_TEST_CASE(event_ids_are_whole_numbers) {
  for (const char* right : {"0", "18446744073709551615", "7@900", "0@0"}) {
    BOOST_REQUIRE(parse_event_id(right));
    BOOST_TEST(to_text(*parse_event_id(right)) == right);
  }
  BOOST_TEST((parse_event_id("7") == event_id{7, {}}));
  BOOST_TEST((parse_event_id("7@900") == event_id{7, 900}));
  for (const char* wrong :
       {"", " 1", "1 ", "-1", "+1", "1x", "18446744073709551616", "0x1", "7@",
        "@7", "7@900@", "7@-1", "7 @1", "7x900"})
    BOOST_TEST(!parse_event_id(wrong), wrong);
}

BOOST_AUTO_TEST_CASE(a_token_that_is_part_of_a_character_is_shown_by_bytes) {
  BOOST_TEST(token_text(" caf\xc3\xa9") == " caf\xc3\xa9");
  BOOST_TEST(token_text("\xe2\x96") == "bytes:\\xe2\\x96");
  BOOST_TEST(token_text("").empty());
  BOOST_TEST(name_of({"a", 7}) == "a");
  BOOST_TEST(name_of({"\xe2", 7}) == "bytes:\\xe2");
  BOOST_TEST(name_of({"", 7}) == "token_id:7");
  logprobs l;
  l.tokens = {{"\xe2", 7}, {"", 8}, {"bytes:a", 9}};
  l.token_logprobs = {-1.0f, -1.0f, -1.0f};
  l.top_logprobs = {logprobs::top{{{"\xc3", 6}, -0.5f}}, std::nullopt,
                    std::nullopt};
  l.text_offset = {0, 0, 0};
  const auto list = token_list(l);
  BOOST_TEST(list[0]["bytes"].dump() == "[226]");
  BOOST_TEST(list[0]["top_logprobs"][0]["bytes"].dump() == "[195]");
  BOOST_TEST(list[1]["bytes"].is_null());
  BOOST_TEST(list[2]["bytes"].dump() == "[98,121,116,101,115,58,97]");
}

BOOST_AUTO_TEST_CASE(offsets_count_characters) {
  BOOST_TEST(characters("") == 0u);
  BOOST_TEST(characters("abc") == 3u);
  BOOST_TEST(characters("\xc3\xa9\xf0\x9f\x90\x9f") == 2u);
  BOOST_TEST(characters("a\xff\xe2\x96") == 4u);
}

BOOST_AUTO_TEST_CASE(models_are_a_list) {
  const std::string one =
    R"({"id":"tiny","object":"model","created":1,"owned_by":"shoal"})";
  model_card tiny;
  tiny.id = "tiny";
  tiny.created = 1;
  BOOST_TEST(model_json(tiny) == one);
  tiny.step = 40;
  BOOST_TEST(model_json(tiny)
             == one.substr(0, one.size() - 1) + R"(,"step":40})");
  BOOST_TEST(
    models_json({{"tiny", 1, "shoal", std::nullopt, std::nullopt, {}},
                 {"b", 2, "me", 4096, std::nullopt, true}})
    == R"({"object":"list","data":[)" + one
         + R"(,{"id":"b","object":"model","created":2,"owned_by":"me",)"
           R"("max_model_len":4096,"ready":true}]})");
  BOOST_TEST(models_json({}) == R"({"object":"list","data":[]})");
}

BOOST_AUTO_TEST_CASE(an_error_has_four_fields) {
  BOOST_TEST(error_json(invalid_request("n is 0", "n", "invalid_value"))
             == R"({"error":{"message":"n is 0",)"
                R"("type":"invalid_request_error","param":"n",)"
                R"("code":"invalid_value"}})");
  BOOST_TEST(error_json(invalid_request("what"))
             == R"({"error":{"message":"what",)"
                R"("type":"invalid_request_error","param":null,)"
                R"("code":null}})");
}

BOOST_AUTO_TEST_CASE(errors_have_the_statuses_that_clients_expect) {
  BOOST_TEST(invalid_request("").status == 400u);
  BOOST_TEST(invalid_api_key("").status == 401u);
  BOOST_TEST(model_not_found("").status == 404u);
  BOOST_TEST(rate_limited("", 3).status == 429u);
  BOOST_TEST(rate_limited("", 3).retry_after_s == 3u);
  BOOST_TEST(server_error("").status == 500u);
  BOOST_TEST(unavailable("", 2).status == 503u);
  BOOST_TEST(unavailable("", 2).retry_after_s == 2u);
  BOOST_TEST(model_not_found("a\x1b[1m\"b").message
             == "the model \"a [1m\\\"b\" is not served here: see /v1/models");
}

BOOST_AUTO_TEST_SUITE_END()
