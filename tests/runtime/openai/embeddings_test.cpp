// tests/runtime/openai/embeddings_test.cpp -- bodies of /v1/embeddings, and vectors as
// they are written.
#include "runtime/files/json.hpp"
#include "runtime/openai/embeddings.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

BOOST_AUTO_TEST_SUITE(embeddings)

using namespace shoal::openai;

namespace {

embedding_request parsed(std::string_view body) {
  auto out = parse_embeddings(body);
  const auto* wrong = std::get_if<api_error>(&out);
  BOOST_REQUIRE_MESSAGE(!wrong, body << ": " << wrong->message);
  return std::get<embedding_request>(std::move(out));
}

api_error mistake(std::string_view body) {
  auto out = parse_embeddings(body);
  BOOST_REQUIRE_MESSAGE(std::holds_alternative<api_error>(out), body);
  return std::get<api_error>(std::move(out));
}

std::string written(std::vector<float> values, bool base64) {
  embedding_request asked;
  asked.base64 = base64;
  const auto writer = make_writer(asked);
  completion_head head;
  head.id = "7";
  head.model = "m";
  writer->set_head(head);
  std::vector<completion_choice> choices(1);
  choices[0].embedding = std::move(values);
  usage used;
  used.prompt_tokens = 5;
  return writer->whole(std::move(choices), used);
}

} // namespace

BOOST_AUTO_TEST_CASE(input_has_four_forms) {
  using ids = std::vector<token_id>;
  BOOST_TEST((parsed(R"({"model":"m","input":"a"})").prompts
              == std::vector<prompt>{"a"}));
  BOOST_TEST((parsed(R"({"input":["a","b"]})").prompts
              == std::vector<prompt>{"a", "b"}));
  BOOST_TEST(
    (parsed(R"({"input":[1,2]})").prompts == std::vector<prompt>{ids{1, 2}}));
  BOOST_TEST((parsed(R"({"input":[[1],[2,3]]})").prompts
              == std::vector<prompt>{ids{1}, ids{2, 3}}));
}

BOOST_AUTO_TEST_CASE(other_fields_are_read) {
  const auto r = parsed(
    R"({"input":"a","encoding_format":"base64","dimensions":8,"user":"u",)"
    R"("add_special_tokens":false,"truncate_prompt_tokens":-1,"other":1})");
  BOOST_TEST(r.base64);
  BOOST_TEST(r.dimensions.value() == 8u);
  BOOST_TEST(!r.add_special_tokens);
  BOOST_TEST(r.prompt_tokens_kept == -1);
  BOOST_TEST(r.n == 1u);
  BOOST_TEST(r.max_tokens == 0u);
  BOOST_TEST(!parsed(R"({"input":"a","encoding_format":null})").base64);
}

BOOST_AUTO_TEST_CASE(mistakes_name_their_field) {
  for (const auto& [body, param] :
       std::vector<std::pair<std::string, std::string>>{
         {R"({})", "input"},
         {R"({"input":[]})", "input"},
         {R"({"input":[[]]})", "input"},
         {R"({"input":["a",1]})", "input"},
         {R"({"input":[1,"a"]})", "input"},
         {R"({"input":{}})", "input"},
         {R"({"messages":[]})", "messages"},
         {R"({"input":"a","encoding_format":"int8"})", "encoding_format"},
         {R"({"input":"a","dimensions":0})", "dimensions"},
         {R"({"input":"a","dimensions":"8"})", "dimensions"},
         {R"({"input":"a","user":[]})", "user"}}) {
    const api_error e = mistake(body);
    BOOST_TEST(e.status == 400u);
    BOOST_TEST(e.param == param, body);
    BOOST_TEST(e.message.starts_with(param), e.message);
  }
  std::string many = R"({"input":["a")";
  for (int i = 0; i < 2048; ++i)
    many += R"(,"a")";
  BOOST_TEST(mistake(many + "]}").param == "input");
}

BOOST_AUTO_TEST_CASE(numbers_are_the_floats) {
  const std::string text = written({0.1F, -1.0F, 1e-30F}, false);
  BOOST_TEST(text.find(R"("embedding":[0.1,-1,1e-30])") != text.npos, text);
  const auto json = nlohmann::json::parse(text);
  BOOST_TEST(json["object"] == "list");
  BOOST_TEST(json["model"] == "m");
  BOOST_TEST(json["usage"]["prompt_tokens"] == 5);
  BOOST_TEST(json["usage"]["total_tokens"] == 5);
}

// As Python's base64 and struct write them.
BOOST_AUTO_TEST_CASE(base64_is_of_little_endian_floats) {
  const std::pair<std::vector<float>, std::string> cases[] = {
    {{1.0F}, "AACAPw=="},
    {{1.0F, -2.0F}, "AACAPwAAAMA="},
    {{1.0F, -2.0F, 0.5F}, "AACAPwAAAMAAAAA/"},
  };
  for (const auto& [values, expected] : cases) {
    const auto json = nlohmann::json::parse(written(values, true));
    BOOST_TEST(json["data"][0]["embedding"] == expected);
    BOOST_TEST(json["data"][0]["index"] == 0);
  }
}

BOOST_AUTO_TEST_CASE(a_vector_has_length_1_or_is_refused) {
  std::vector<float> values{3, 0, -4};
  BOOST_TEST(normalize(values));
  BOOST_TEST((values == std::vector<float>{0.6F, 0, -0.8F}));
  values.assign(3, 0.0F);
  BOOST_TEST(!normalize(values));
  values[1] = std::numeric_limits<float>::infinity();
  BOOST_TEST(!normalize(values));
  values.assign(2, std::numeric_limits<float>::max()); // squares fit a double
  BOOST_TEST(normalize(values));
}

BOOST_AUTO_TEST_SUITE_END()
