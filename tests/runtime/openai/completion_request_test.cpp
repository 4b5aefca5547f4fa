// tests/runtime/openai/completion_request_test.cpp -- each field of a body, and
// each of its mistakes by name.
#include "runtime/openai/completion_request.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>
#include <string>

BOOST_AUTO_TEST_SUITE(completion_requests)

using namespace shoal::openai;
namespace data = boost::unit_test::data;

namespace {

completion_limits small() {
  completion_limits l;
  l.prompts_max = 3;
  l.prompt_bytes_max = 10;
  l.prompt_tokens_max = 4;
  l.n_max = 4;
  l.choices_max = 6;
  l.tokens_max = 100;
  l.stops_max = 2;
  l.stop_bytes_max = 3;
  l.name_bytes_max = 5;
  l.values_max = 40;
  return l;
}

completion_request
good(const std::string& body, const completion_limits& limits = {}) {
  auto parsed = parse_completion(body, limits);
  if (const auto* error = std::get_if<api_error>(&parsed))
    BOOST_FAIL(body + ": " + error->message);
  return std::get<completion_request>(parsed);
}

/// A body with a prompt and the given fields.
std::string with(const std::string& fields) {
  return R"({"prompt":"a",)" + fields + "}";
}

api_error bad(const std::string& body, const completion_limits& limits = {}) {
  auto parsed = parse_completion(body, limits);
  BOOST_TEST_REQUIRE(std::holds_alternative<api_error>(parsed), body);
  return std::get<api_error>(parsed);
}

struct mistake {
  const char* fields;
  const char* param;
  const char* code;
  const char* message;
};
std::ostream& operator<<(std::ostream& out, const mistake& m) {
  return out << m.fields;
}

const mistake mistakes[] = {
  {R"("model":1)", "model", "invalid_type", "model is 1, must be a string"},
  {R"("model":"abcdef")", "model", "invalid_value",
   "model is longer than 5 bytes"},
  {R"("max_tokens":"9")", "max_tokens", "invalid_type",
   "max_tokens is \"9\", must be a whole number"},
  {R"("max_tokens":-1)", "max_tokens", "invalid_value",
   "max_tokens is -1, must be a whole number between 0 and 100"},
  {R"("max_tokens":101)", "max_tokens", "invalid_value",
   "max_tokens is 101, must be a whole number between 0 and 100"},
  {R"("max_tokens":1.5)", "max_tokens", "invalid_value",
   "max_tokens is 1.5, must be a whole number between 0 and 100"},
  {R"("max_tokens":18446744073709551615)", "max_tokens", "invalid_value",
   "max_tokens is 18446744073709551615, must be a whole number between 0 and "
   "100"},
  {R"("max_tokens":1e300)", "max_tokens", "invalid_value",
   "max_tokens is 1e+300, must be a whole number between 0 and 100"},
  {R"("max_tokens":true)", "max_tokens", "invalid_type",
   "max_tokens is true, must be a whole number"},
  {R"("max_tokens":0)", "max_tokens", "invalid_value",
   "max_tokens is 0, which is only allowed with echo"},
  {R"("temperature":-0.1)", "temperature", "invalid_value",
   "temperature is -0.1, must be between 0 and 2"},
  {R"("temperature":2.5)", "temperature", "invalid_value",
   "temperature is 2.5, must be between 0 and 2"},
  {R"("temperature":[1])", "temperature", "invalid_type",
   "temperature is a list, must be a number"},
  {R"("top_p":0)", "top_p", "invalid_value",
   "top_p is 0, must be above 0 and at most 1"},
  {R"("top_p":1e-60)", "top_p", "invalid_value",
   "top_p is 1e-60, must be above 0 and at most 1"},
  {R"("top_p":1.01)", "top_p", "invalid_value",
   "top_p is 1.01, must be above 0 and at most 1"},
  {R"("top_k":-2)", "top_k", "invalid_value",
   "top_k is -2, must be a whole number between -1 and 1073741824"},
  {R"("min_p":1.5)", "min_p", "invalid_value",
   "min_p is 1.5, must be between 0 and 1"},
  {R"("repetition_penalty":0)", "repetition_penalty", "invalid_value",
   "repetition_penalty is 0, must be above 0 and at most 10"},
  {R"("seed":1.5)", "seed", "invalid_type",
   "seed is 1.5, must be a whole number of 64 bits"},
  {R"("seed":"1")", "seed", "invalid_type",
   "seed is \"1\", must be a whole number of 64 bits"},
  {R"("n":0)", "n", "invalid_value",
   "n is 0, must be a whole number between 1 and 4"},
  {R"("n":5)", "n", "invalid_value",
   "n is 5, must be a whole number between 1 and 4"},
  {R"("n":3,"best_of":2)", "best_of", "invalid_value",
   "best_of is 2, less than n, which is 3"},
  {R"("best_of":5)", "best_of", "invalid_value",
   "best_of is 5, must be a whole number between 1 and 4"},
  {R"("best_of":2,"stream":true)", "best_of", "invalid_value",
   "best_of above n is not allowed if stream is true"},
  {R"("truncate_prompt_tokens":-2)", "truncate_prompt_tokens", "invalid_value",
   "truncate_prompt_tokens is -2, must be a whole number between -1 and 100"},
  {R"("include_stop_str_in_output":1)", "include_stop_str_in_output",
   "invalid_type", "include_stop_str_in_output is 1, must be true or false"},
  {R"("skip_special_tokens":1)", "skip_special_tokens", "invalid_type",
   "skip_special_tokens is 1, must be true or false"},
  {R"("parallel_tool_calls":1)", "parallel_tool_calls", "invalid_type",
   "parallel_tool_calls is 1, must be true or false"},
  {R"("stream":true,"stream_options":{"continuous_usage_stats":1})",
   "stream_options.continuous_usage_stats", "invalid_type",
   "stream_options.continuous_usage_stats is 1, must be true or false"},
  {R"("best_of":"2")", "best_of", "invalid_type",
   "best_of is \"2\", must be a whole number"},
  {R"("stop":1)", "stop", "invalid_type",
   "stop is 1, must be a string or a list of strings"},
  {R"("stop":{"a":"b"})", "stop", "invalid_type",
   "stop is an object, must be a string or a list of strings"},
  {R"("stop":["a",null])", "stop", "invalid_type",
   "stop is null, must be a string or a list of strings"},
  {R"("stop":"")", "stop", "invalid_value", "stop has an empty string"},
  {R"("stop":["a","b","c"])", "stop", "invalid_value",
   "stop has more than 2 strings"},
  {R"("stop":"abcd")", "stop", "invalid_value",
   "stop has a string of more than 3 bytes"},
  {R"("stream":1)", "stream", "invalid_type",
   "stream is 1, must be true or false"},
  {R"("stream_options":{})", "stream_options", "invalid_value",
   "stream_options is only allowed if stream is true"},
  {R"("stream":true,"stream_options":[])", "stream_options", "invalid_type",
   "stream_options is a list, must be an object"},
  {R"("stream":true,"stream_options":{"include_usage":1})",
   "stream_options.include_usage", "invalid_type",
   "stream_options.include_usage is 1, must be true or false"},
  {R"("logprobs":6)", "logprobs", "invalid_value",
   "logprobs is 6, must be a whole number between 0 and 5"},
  {R"("logprobs":true)", "logprobs", "invalid_type",
   "logprobs is true, must be a whole number"},
  {R"("echo":"yes")", "echo", "invalid_type",
   "echo is \"yes\", must be true or false"},
  {R"("user":"abcdef")", "user", "invalid_value",
   "user is longer than 5 bytes"},
  {R"("suffix":"x")", "suffix", "unsupported_parameter",
   "suffix is not supported: leave it out"},
  {R"("presence_penalty":2.5)", "presence_penalty", "invalid_value",
   "presence_penalty is 2.5, must be between -2 and 2"},
  {R"("frequency_penalty":-3)", "frequency_penalty", "invalid_value",
   "frequency_penalty is -3, must be between -2 and 2"},
  {R"("frequency_penalty":"0")", "frequency_penalty", "invalid_type",
   "frequency_penalty is \"0\", must be a number"},
  {R"("logit_bias":[1])", "logit_bias", "invalid_type",
   "logit_bias is a list, must be an object"},
  {R"("logit_bias":{"x":1})", "logit_bias", "invalid_value",
   "logit_bias has the key \"x\", which is no token id"},
  {R"("logit_bias":{"-1":1})", "logit_bias", "invalid_value",
   "logit_bias has the key \"-1\", which is no token id"},
  {R"("logit_bias":{"5":101})", "logit_bias", "invalid_value",
   "logit_bias of 5 is 101, must be a number between -100 and 100"},
  {R"("logit_bias":{"5":"1"})", "logit_bias", "invalid_value",
   "logit_bias of 5 is \"1\", must be a number between -100 and 100"},
  {R"("stop_token_ids":5)", "stop_token_ids", "invalid_type",
   "stop_token_ids is 5, must be a list of token ids"},
  {R"("stop_token_ids":[1,-1])", "stop_token_ids", "invalid_type",
   "stop_token_ids is -1, must be a list of token ids"},
  {R"("stop_token_ids":[1,2,3])", "stop_token_ids", "invalid_value",
   "stop_token_ids has more than 2 ids"},
};

#define FORMS                                                                  \
  "a string, a list of strings, a list of token ids or a list of lists of "    \
  "token ids"

/// Values of `prompt`.
const mistake prompts[] = {
  {"null", "prompt", "missing_required_parameter",
   "prompt is missing: give a string, or a list"},
  {"1", "prompt", "invalid_type", "prompt is 1, must be " FORMS},
  {"{}", "prompt", "invalid_type", "prompt is an object, must be " FORMS},
  {"[]", "prompt", "invalid_value", "prompt is an empty list"},
  {"[[]]", "prompt", "invalid_value", "prompt has an empty list of token ids"},
  {"[true]", "prompt", "invalid_type", "prompt is true, must be " FORMS},
  {R"([{"a":1}])", "prompt", "invalid_type",
   "prompt is an object, must be " FORMS},
  {R"(["a",1])", "prompt", "invalid_type", "prompt is 1, must be " FORMS},
  {R"([[1],"a"])", "prompt", "invalid_type", "prompt is \"a\", must be " FORMS},
  {R"([1,"a"])", "prompt", "invalid_type",
   "prompt has \"a\" where a token id should be"},
  {"[1,-1]", "prompt", "invalid_type",
   "prompt has -1 where a token id should be"},
  {"[2147483648]", "prompt", "invalid_type",
   "prompt has 2147483648 where a token id should be"},
  {"[1.5]", "prompt", "invalid_type",
   "prompt has 1.5 where a token id should be"},
  {"[1,[2]]", "prompt", "invalid_type",
   "prompt has a list where a token id should be"},
  {"[1,2,3,4,5]", "prompt", "invalid_value",
   "prompt has more than 4 token ids"},
  {"[[1,2,3],[4,5]]", "prompt", "invalid_value",
   "prompt has more than 4 token ids"},
  {R"("12345678901")", "prompt", "invalid_value",
   "prompt has more than 10 bytes"},
  {R"(["123456","12345"])", "prompt", "invalid_value",
   "prompt has more than 10 bytes"},
  {R"(["a","b","c","d"])", "prompt", "invalid_value",
   "prompt has 4 prompts, more than 3"},
};

} // namespace

BOOST_AUTO_TEST_CASE(a_body_without_options_has_the_defaults) {
  const auto r = good(R"({"prompt":"Once"})");
  BOOST_TEST(r.model.empty());
  BOOST_TEST_REQUIRE(r.prompts.size() == 1u);
  BOOST_TEST(std::get<std::string>(r.prompts[0]) == "Once");
  BOOST_TEST(r.max_tokens == 16u);
  BOOST_TEST(!r.temperature);
  BOOST_TEST(!r.top_p);
  BOOST_TEST(!r.top_k);
  BOOST_TEST(!r.min_p);
  BOOST_TEST(!r.repetition_penalty);
  BOOST_TEST(!r.seed);
  BOOST_TEST(r.n == 1u);
  BOOST_TEST(r.stop.empty());
  BOOST_TEST(!r.stream);
  BOOST_TEST(!r.include_usage);
  BOOST_TEST(!r.logprobs);
  BOOST_TEST(!r.echo);
  BOOST_TEST(r.user.empty());
  BOOST_TEST(!r.ignore_eos);
  BOOST_TEST(!r.return_token_ids);
  BOOST_TEST(r.generated() == 1u);
  BOOST_TEST(r.prompt_tokens_kept == 0);
  BOOST_TEST(!r.include_stop);
  BOOST_TEST(r.skip_special);
  BOOST_TEST(r.parallel_calls);
}

BOOST_AUTO_TEST_CASE(fields_of_other_servers_are_read) {
  const auto r = good(with(
    R"("best_of":4,"n":2,"truncate_prompt_tokens":9,
       "include_stop_str_in_output":true,"skip_special_tokens":false,
       "parallel_tool_calls":false)"));
  BOOST_TEST(r.n == 2u);
  BOOST_TEST(r.generated() == 4u);
  BOOST_TEST(r.prompt_tokens_kept == 9);
  BOOST_TEST(r.include_stop);
  BOOST_TEST(!r.skip_special);
  BOOST_TEST(!r.parallel_calls);
  const auto usage_in_events = [](const char* options) {
    return good(
             with(R"("stream":true,"stream_options":)" + std::string(options)))
      .usage_in_events;
  };
  BOOST_TEST(
    usage_in_events(R"({"include_usage":true,"continuous_usage_stats":true})"));
  BOOST_TEST(!usage_in_events(R"({"continuous_usage_stats":true})"));
}

BOOST_AUTO_TEST_CASE(each_field_is_read) {
  const auto r = good(R"({"model":"m","prompt":["a","\u00e9\u0000"],
    "max_tokens":7,"temperature":0.5,"top_p":0.25,"top_k":40,"min_p":0.125,
    "repetition_penalty":1.5,"seed":-3,"n":3,"best_of":3,"stop":["x","\n"],
    "stream":true,"stream_options":{"include_usage":true},"logprobs":5,
    "echo":true,"user":"u","ignore_eos":true,"return_token_ids":true})");
  BOOST_TEST(r.model == "m");
  BOOST_TEST_REQUIRE(r.prompts.size() == 2u);
  BOOST_TEST(std::get<std::string>(r.prompts[1])
             == std::string("\xc3\xa9\0", 3));
  BOOST_TEST(r.max_tokens == 7u);
  BOOST_TEST(r.temperature.value() == 0.5f);
  BOOST_TEST(r.top_p.value() == 0.25f);
  BOOST_TEST(r.top_k.value() == 40u);
  BOOST_TEST(r.min_p.value() == 0.125f);
  BOOST_TEST(r.repetition_penalty.value() == 1.5f);
  BOOST_TEST(r.seed.value() == std::uint64_t(-3));
  BOOST_TEST(r.n == 3u);
  BOOST_TEST(r.stop == (std::vector<std::string>{"x", "\n"}),
             boost::test_tools::per_element());
  BOOST_TEST(r.stream);
  BOOST_TEST(r.include_usage);
  BOOST_TEST(r.logprobs.value() == 5u);
  BOOST_TEST(r.echo);
  BOOST_TEST(r.user == "u");
  BOOST_TEST(r.ignore_eos);
  BOOST_TEST(r.return_token_ids);
}

BOOST_AUTO_TEST_CASE(a_prompt_has_four_forms) {
  using ids = std::vector<token_id>;
  auto r = good(R"({"prompt":[5,0,2147483647,7.0]})");
  BOOST_TEST_REQUIRE(r.prompts.size() == 1u);
  BOOST_TEST((std::get<ids>(r.prompts[0]) == ids{5, 0, 2147483647, 7}));
  r = good(R"({"prompt":[[1,2],[3]]})");
  BOOST_TEST_REQUIRE(r.prompts.size() == 2u);
  BOOST_TEST((std::get<ids>(r.prompts[0]) == ids{1, 2}));
  BOOST_TEST((std::get<ids>(r.prompts[1]) == ids{3}));
  r = good(R"({"prompt":["a"]})");
  BOOST_TEST(std::get<std::string>(r.prompts.at(0)) == "a");
  r = good(R"({"prompt":""})"); // the tokenizer may still begin it
  BOOST_TEST(std::get<std::string>(r.prompts.at(0)).empty());
}

BOOST_AUTO_TEST_CASE(null_stands_for_the_default) {
  std::string fields;
  for (const char* name : {"model",
                           "max_tokens",
                           "temperature",
                           "top_p",
                           "top_k",
                           "min_p",
                           "repetition_penalty",
                           "seed",
                           "n",
                           "best_of",
                           "stop",
                           "stream",
                           "stream_options",
                           "logprobs",
                           "echo",
                           "user",
                           "suffix",
                           "presence_penalty",
                           "frequency_penalty",
                           "logit_bias"})
    fields += std::string(fields.empty() ? "" : ",") + "\"" + name + "\":null";
  const auto r = good(with(fields));
  BOOST_TEST(r.max_tokens == 16u);
  BOOST_TEST(r.n == 1u);
  BOOST_TEST(!good(with(R"("stream":true,"stream_options":
                           {"include_usage":null})"))
                .include_usage);
}

BOOST_AUTO_TEST_CASE(values_without_effect_are_accepted) {
  good(with(R"("suffix":"","presence_penalty":0,"frequency_penalty":0.0,
               "logit_bias":{},"best_of":1,"stop":[],"unheard_of":[{}])"));
  BOOST_TEST(good(with(R"("top_k":-1)")).top_k.value() == 0u);
  BOOST_TEST(good(with(R"("top_k":0)")).top_k.value() == 0u);
  BOOST_TEST(good(with(R"("max_tokens":0,"echo":true)")).max_tokens == 0u);
  BOOST_TEST(good(with(R"("max_tokens":8.0)")).max_tokens == 8u);
  BOOST_TEST(good(with(R"("temperature":0)")).temperature.value() == 0.0f);
  BOOST_TEST(good(with(R"("temperature":2)")).temperature.value() == 2.0f);
  BOOST_TEST(good(with(R"("top_p":1)")).top_p.value() == 1.0f);
  BOOST_TEST(good(with(R"("logprobs":0)")).logprobs.value() == 0u);
  BOOST_TEST(good(with(R"("seed":18446744073709551615)")).seed.value()
             == 18446744073709551615u);
}

BOOST_AUTO_TEST_CASE(limits_are_the_last_values_that_pass) {
  const auto l = small();
  good(R"({"prompt":"1234567890"})", l);
  good(R"({"prompt":["1","2","3"],"n":2})", l);
  good(R"({"prompt":[[1,2],[3,4]]})", l);
  good(with(R"("max_tokens":100,"n":4,"stop":["abc","x"],"model":"abcde")"), l);
}

BOOST_DATA_TEST_CASE(a_mistake_names_its_field, data::make(mistakes)) {
  const auto error = bad(with(sample.fields), small());
  BOOST_TEST(error.status == 400u);
  BOOST_TEST(error.type == "invalid_request_error");
  BOOST_TEST(error.param == sample.param);
  BOOST_TEST(error.code == sample.code);
  BOOST_TEST(error.message == sample.message);
}

BOOST_DATA_TEST_CASE(a_wrong_prompt_is_told, data::make(prompts)) {
  const auto error =
    bad(R"({"prompt":)" + std::string(sample.fields) + "}", small());
  BOOST_TEST(error.param == sample.param);
  BOOST_TEST(error.code == sample.code);
  BOOST_TEST(error.message == sample.message);
}

BOOST_AUTO_TEST_CASE(prompts_times_n_has_a_limit) {
  const auto error = bad(R"({"prompt":["a","b"],"n":4})", small());
  BOOST_TEST(error.param == "n");
  BOOST_TEST(error.message
             == "n times the number of prompts is 8, more than 6");
}

BOOST_AUTO_TEST_CASE(what_is_no_object_is_told) {
  BOOST_TEST(bad("[1]").message == "the request body: is not a JSON object");
  BOOST_TEST(bad("").message
             == "the request body: is not valid JSON: it is cut off at byte 1");
  BOOST_TEST(bad("{\"prompt\":\"\xff\"}")
               .message.starts_with("the request body: is not valid JSON"));
  BOOST_TEST(bad(R"({"prompt":1e999})")
               .message.starts_with("the request body: is not valid JSON"));
  BOOST_TEST(bad("{}").param == "prompt");
  const std::string deep(100000, '[');
  BOOST_TEST(bad(deep).message
             == "the request body: is nested deeper than 64 levels");
}

/// Each value costs memory, though it may be one byte of the body.
BOOST_AUTO_TEST_CASE(the_number_of_values_has_a_limit) {
  auto l = small();
  std::string list = "0";
  for (std::size_t i = 3; i < l.values_max; ++i)
    list += ",0";
  // Two brackets, and values_max - 2 numbers.
  good(R"({"prompt":"a","x":[)" + list.substr(4) + "]}", l);
  BOOST_TEST(bad(R"({"prompt":"a","x":[)" + list + ",0]}", l).message
             == "the request body has more than 40 values");
  // Commas in texts are not counted.
  l.prompt_bytes_max = 200;
  good(R"({"prompt":")" + std::string(100, ',') + R"(\",[{"})", l);
}

// Objects keep their order, so that each key is compared with those before it.
BOOST_AUTO_TEST_CASE(an_object_with_very_many_keys_is_refused_at_once) {
  std::string body = R"({"model": "m", "prompt": "x", "more": {)";
  for (int k = 0; k != 200'000; ++k)
    body += '"' + std::to_string(1'000'000 + k) + "\":1,";
  body += R"("a": 1}})";
  const auto parsed = parse_completion(body);
  const auto* const why = std::get_if<api_error>(&parsed);
  BOOST_REQUIRE(why != nullptr);
  BOOST_TEST(why->message
             == "the request body has an object with more than 4096 keys");
}

BOOST_AUTO_TEST_SUITE_END()
