// tests/runtime/model/hf/generation_config_test.cpp -- defaults of a model's
// maker.
#include "runtime/model/hf/generation_config.hpp"
#include "tests/runtime/model/fixture.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(generation_config)

using namespace shoal::model;
using namespace shoal::tests;

BOOST_AUTO_TEST_CASE(only_keys_in_the_file_apply) {
  const auto none = parse_generation_config(
    R"({"_from_model_config": true, "bos_token_id": 1, "top_k": null})");
  BOOST_REQUIRE(none);
  BOOST_TEST((*none == generation_defaults()));
  const auto all = parse_generation_config(
    R"({"do_sample": true, "temperature": 0.5, "top_k": 40, "top_p": 0.9,
        "min_p": 0.1, "repetition_penalty": 1.25, "max_new_tokens": 7,
        "eos_token_id": [3, 4]})");
  BOOST_REQUIRE(all);
  BOOST_TEST(*all->temperature == 0.5f);
  BOOST_TEST(*all->top_k == 40u);
  BOOST_TEST(*all->top_p == 0.9f);
  BOOST_TEST(*all->min_p == 0.1f);
  BOOST_TEST(*all->repetition_penalty == 1.25f);
  BOOST_TEST(*all->max_tokens == 7u);
  BOOST_TEST((*all->eos_token_ids == std::vector<std::int32_t>{3, 4}));
}

BOOST_AUTO_TEST_CASE(do_sample_is_about_temperature) {
  const auto of = [](std::string_view text) {
    return parse_generation_config(text)->temperature;
  };
  BOOST_TEST((of(R"({"do_sample": false, "temperature": 0.7})") == 0.0f));
  BOOST_TEST((of(R"({"do_sample": true})") == 1.0f));
  BOOST_TEST((of(R"({"temperature": 0.7})") == 0.7f));
  BOOST_TEST((of(R"({"eos_token_id": 2})") == std::nullopt));
}

BOOST_AUTO_TEST_CASE(errors_name_the_key) {
  const std::pair<const char*, const char*> wrong[] = {
    {"[]", "is not a JSON object"},
    {"{", "is not valid JSON"},
    {R"({"temperature": -1})", "temperature"},
    {R"({"temperature": 1e39})", "temperature"},
    {R"({"top_k": 1.5})", "top_k"},
    {R"({"top_k": -1})", "top_k"},
    {R"({"top_p": 0})", "top_p"},
    {R"({"top_p": 1e-60})", "top_p"},
    {R"({"min_p": 1.01})", "min_p"},
    {R"({"repetition_penalty": 0})", "repetition_penalty"},
    {R"({"repetition_penalty": 1e-45})", "repetition_penalty"},
    {R"({"max_new_tokens": 0})", "max_new_tokens"},
    {R"({"eos_token_id": 4294967296})", "eos_token_id"},
    {R"({"eos_token_id": ["a"]})", "eos_token_id"},
    {R"({"do_sample": "yes"})", "do_sample"},
  };
  for (const auto& [text, key] : wrong) {
    const auto got = parse_generation_config(text, "g.json");
    BOOST_TEST(why(got).find(std::string("g.json: ") + key) == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_directory_may_lack_it) {
  temporary_folder folder;
  const auto absent = load_generation_config(folder.path());
  BOOST_REQUIRE(absent);
  BOOST_TEST((*absent == generation_defaults()));
  write_text(folder / "generation_config.json", R"({"top_k": 5})");
  BOOST_TEST(*load_generation_config(folder.path())->top_k == 5u);
}

BOOST_AUTO_TEST_SUITE_END()
