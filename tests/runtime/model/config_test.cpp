// tests/runtime/model/config_test.cpp -- config.json, in and out.
#include "runtime/model/config.hpp"
#include "tests/runtime/model/fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>

namespace bdata = boost::unit_test::data;
using namespace shoal::model;
using namespace shoal::tests;

namespace {

struct bad_config {
  const char* json;
  const char* named; ///< must be in the message
};
std::ostream& operator<<(std::ostream& out, const bad_config& bad) {
  return out << bad.json;
}

const bad_config bad_configs[] = {
  {"", "not valid JSON"},
  {"[]", "not a JSON object"},
  {R"({"model_type":"gpt2"})", "model_type: \"gpt2\""},
  {R"({"model_type":7})", "model_type: must be a string"},
  {R"({"hidden_size":0})", "hidden_size: 0"},
  {R"({"hidden_size":-4})", "hidden_size: must be a whole number"},
  {R"({"hidden_size":4.5})", "hidden_size: must be a whole number"},
  {R"({"hidden_size":99999999999999999999})", "hidden_size"},
  {R"({"hidden_size":100000000,"num_attention_heads":1})", "hidden_size"},
  {R"({"hidden_size":63,"num_attention_heads":4})", "num_attention_heads"},
  {R"({"num_attention_heads":0})", "num_attention_heads"},
  {R"({"num_attention_heads":4,"num_key_value_heads":3})",
   "num_key_value_heads: 3"},
  {R"({"num_key_value_heads":0})", "num_key_value_heads"},
  {R"({"head_dim":7})", "head_dim: 7 is odd"},
  {R"({"num_hidden_layers":1000000})", "num_hidden_layers"},
  {R"({"vocab_size":"many"})", "vocab_size"},
  {R"({"rms_norm_eps":0})", "rms_norm_eps"},
  {R"({"rms_norm_eps":1e-60})", "rms_norm_eps"},
  {R"({"rope_theta":-1})", "rope_theta"},
  {R"({"initializer_range":-1})", "initializer_range"},
  {R"({"hidden_act":"gelu"})", "hidden_act"},
  {R"({"attention_bias":true})", "attention_bias"},
  {R"({"mlp_bias":true})", "mlp_bias"},
  {R"({"attention_dropout":0.1})", "attention_dropout"},
  {R"({"quantization_config":{"bits":4}})", "quantization_config"},
  {R"({"tie_word_embeddings":1})", "tie_word_embeddings"},
  {R"({"rope_scaling":{"rope_type":"llama3","factor":8}})",
   "rope_scaling: rope_type: \"llama3\""},
  {R"({"rope_parameters":{"rope_type":"yarn"}})", "rope_parameters: rope_type"},
  {R"({"rope_scaling":{"type":"linear"}})", "rope_scaling: type"},
  {R"({"rope_theta":1e4,"rope_parameters":{"rope_theta":2e4}})",
   "rope_parameters: rope_theta"},
  {R"({"rope_parameters":[1]})", "rope_parameters"},
  {R"({"vocab_size":10,"bos_token_id":10})", "bos_token_id"},
  {R"({"vocab_size":10,"eos_token_id":[3,12]})", "eos_token_id"},
};

} // namespace

BOOST_AUTO_TEST_SUITE(config)

BOOST_DATA_TEST_CASE(a_bad_config_is_refused_by_name, bdata::make(bad_configs),
                     bad) {
  const auto parsed = parse_config(bad.json, "some/config.json");
  BOOST_REQUIRE(!parsed);
  BOOST_TEST(parsed.message().starts_with("some/config.json: "));
  BOOST_TEST(parsed.message().find(bad.named) != std::string::npos,
             parsed.message());
}

BOOST_AUTO_TEST_CASE(what_is_left_out_gets_the_familys_usual_value) {
  const auto parsed = parse_config("{}");
  BOOST_REQUIRE(parsed);
  BOOST_TEST((*parsed == model_config()));
  const auto some = parse_config(R"({"hidden_size":512,"num_attention_heads":8,
                       "vocab_size":2,"unknown_key":1})");
  BOOST_REQUIRE(some);
  BOOST_TEST(some->head_dim == 64u);
  BOOST_TEST(some->num_key_value_heads == 8u);
  BOOST_TEST(some->eos_token_ids.empty()); // 2 is not in a vocabulary of 2
}

BOOST_AUTO_TEST_CASE(both_spellings_of_rope_theta_are_read) {
  BOOST_TEST(parse_config(R"({"rope_theta":5e5})")->rope_theta == 5e5);
  BOOST_TEST(parse_config(R"({"rope_parameters":{"rope_theta":5e5,
                     "rope_type":"default"}})")
               ->rope_theta
             == 5e5);
  BOOST_TEST(
    parse_config(R"({"rope_theta":5e5,"rope_scaling":null})")->rope_theta
    == 5e5);
}

BOOST_AUTO_TEST_CASE(what_is_written_is_read_again) {
  model_config c;
  c.hidden_size = 48;
  c.num_attention_heads = 6;
  c.num_key_value_heads = 2;
  c.head_dim = 10;
  c.rope_theta = 123456.5;
  c.rms_norm_eps = 1e-5;
  c.tie_word_embeddings = true;
  for (const std::vector<std::int32_t>& eos :
       {std::vector<std::int32_t>{}, {7}, {7, 9}}) {
    c.eos_token_ids = eos;
    c.bos_token_id.reset();
    const auto again = parse_config(to_json(c));
    BOOST_REQUIRE_MESSAGE(again, why(again));
    BOOST_TEST((*again == c));
  }
}

BOOST_AUTO_TEST_SUITE_END()
