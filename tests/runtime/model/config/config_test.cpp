// tests/runtime/model/config/config_test.cpp -- config.json, in and out.
#include "runtime/model/config/config.hpp"
#include "tests/runtime/model/fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <ostream>

BOOST_AUTO_TEST_SUITE(config)

namespace bdata = boost::unit_test::data;
using namespace shoal;
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
  {R"({"model_type":"gpt9"})", "model_type: \"gpt9\""},
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
  {R"({"hidden_size":63,"num_attention_heads":1,"num_key_value_heads":1})",
   "hidden_size, 63, / num_attention_heads, 1"},
  {R"({"num_hidden_layers":1000000})", "num_hidden_layers"},
  {R"({"vocab_size":"many"})", "vocab_size"},
  {R"({"rms_norm_eps":0})", "rms_norm_eps"},
  {R"({"rms_norm_eps":1e-60})", "rms_norm_eps"},
  {R"({"rope_theta":-1})", "rope_theta"},
  {R"({"initializer_range":-1})", "initializer_range"},
  {R"({"hidden_act":"relu"})", "hidden_act: \"relu\""},
  {R"({"model_type":"gpt2","activation_function":"silu"})",
   "hidden_act: \"silu\""},
  {R"({"attention_bias":1})", "attention_bias"},
  {R"({"model_type":"mistral","attention_bias":true})", "attention_bias"},
  {R"({"model_type":"qwen2","mlp_bias":true})", "mlp_bias"},
  {R"({"attention_dropout":1})", "attention_dropout"},
  {R"({"model_type":"gpt2","attn_pdrop":-0.5})", "attn_pdrop"},
  {R"({"model_type":"gpt2","n_embd":"x"})", "n_embd: must be a whole"},
  {R"({"model_type":"gpt2","n_embd":770})", "num_attention_heads"},
  {R"({"model_type":"gpt2","scale_attn_weights":false})", "scale_attn_weights"},
  {R"({"model_type":"gemma2","use_bidirectional_attention":true})",
   "use_bidirectional_attention"},
  {R"({"model_type":"gemma2","final_logit_softcapping":-3})",
   "final_logit_softcapping"},
  {R"({"model_type":"gemma2","query_pre_attn_scalar":0})",
   "query_pre_attn_scalar"},
  {R"({"model_type":"gemma2","layer_types":["full_attention"]})",
   "layer_types"},
  {R"({"model_type":"gemma2","num_hidden_layers":1,
       "layer_types":["chunked_attention"]})",
   "layer_types: \"chunked_attention\""},
  {R"({"model_type":"llama","num_hidden_layers":1,
       "layer_types":["chunked_attention"]})",
   "layer_types: \"chunked_attention\""},
  {R"({"model_type":"qwen2","layer_types":["full_attention"]})", "layer_types"},
  {R"({"model_type":"llama","partial_rotary_factor":0.5})",
   "partial_rotary_factor"},
  {R"({"model_type":"mistral","sliding_window":-1})", "sliding_window"},
  {R"({"model_type":"mixtral","num_local_experts":0})", "num_experts"},
  {R"({"model_type":"mixtral","num_local_experts":5000})", "num_experts: 5000"},
  {R"({"model_type":"mixtral","num_hidden_layers":4096,
       "num_local_experts":4096})",
   "num_experts: with the other sizes makes 50360323 tensors"},
  {R"({"model_type":"llama","num_hidden_layers":4097})",
   "num_hidden_layers: 4097 is not in 1 .. 4096"},
  {R"({"model_type":"mixtral","num_experts_per_tok":9})",
   "num_experts_per_tok: 9"},
  {R"({"model_type":"qwen3_moe","decoder_sparse_step":2})",
   "decoder_sparse_step"},
  {R"({"model_type":"qwen3_moe","mlp_only_layers":[1]})", "mlp_only_layers"},
  {R"({"model_type":"qwen3_moe","router_aux_loss_coef":-1})",
   "router_aux_loss_coef"},
  {R"({"model_type":"mistral","sliding_window":99999999})",
   "sliding_window: 99999999"},
  {R"({"quantization_config":{"bits":4}})", "quantization_config"},
  {R"({"tie_word_embeddings":1})", "tie_word_embeddings"},
  {R"({"rope_scaling":{"rope_type":"llama3","factor":8}})",
   "rope_scaling: low_freq_factor: is missing"},
  {R"({"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":4,
       "high_freq_factor":4,"original_max_position_embeddings":9}})",
   "rope_scaling: high_freq_factor"},
  {R"({"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,
       "high_freq_factor":4,"original_max_position_embeddings":0}})",
   "rope_scaling: original_max_position_embeddings"},
  {R"({"rope_parameters":{"rope_type":"longrope"}})",
   "rope_parameters: rope_type: \"longrope\""},
  {R"({"rope_parameters":{"full_attention":{"rope_type":"default"}}})",
   "rope_parameters: full_attention"},
  {R"({"rope_scaling":{"type":"linear"}})", "rope_scaling: factor: is missing"},
  {R"({"rope_scaling":{"type":"linear","factor":0.5}})",
   "rope_scaling: factor"},
  {R"({"rope_theta":1,"rope_scaling":{"type":"yarn","factor":2}})",
   "rope_theta"},
  {R"({"rope_theta":1e4,"rope_parameters":{"rope_theta":2e4}})",
   "rope_parameters: rope_theta"},
  {R"({"rope_parameters":[1]})", "rope_parameters"},
  {R"({"vocab_size":10,"bos_token_id":10})", "bos_token_id"},
  {R"({"vocab_size":10,"eos_token_id":[3,12]})", "eos_token_id"},
};

} // namespace

BOOST_DATA_TEST_CASE(a_bad_config_is_refused_by_name, bdata::make(bad_configs),
                     bad) {
  const auto parsed = parse_config(bad.json, "some/config.json");
  BOOST_REQUIRE(!parsed);
  BOOST_TEST(parsed.message().starts_with("some/config.json: "));
  BOOST_TEST(parsed.message().find(bad.named) != std::string::npos,
             parsed.message());
}

BOOST_AUTO_TEST_CASE(missing_keys_get_the_familys_usual_value) {
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

BOOST_AUTO_TEST_CASE(both_spellings_of_scaling_are_read) {
  using rule = kernels::rope_scaling::rule;
  for (const char* key : {"rope_scaling", "rope_parameters"})
    for (const char* type : {"type", "rope_type"}) {
      const auto parsed =
        parse_config(std::string("{\"") + key + "\":{\"" + type
                     + R"(":"linear","factor":2.5,"rope_theta":5e5}})");
      BOOST_REQUIRE_MESSAGE(parsed, why(parsed));
      BOOST_TEST((parsed->rope_scaling.type == rule::linear));
      BOOST_TEST(parsed->rope_scaling.factor == 2.5);
      BOOST_TEST(parsed->rope_theta == 5e5);
      BOOST_TEST(to_json(*parsed).find("original_max") == std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(yarn_has_the_size_of_its_paper) {
  const auto parsed =
    parse_config(R"({"rope_scaling":{"rope_type":"yarn","factor":4}})");
  BOOST_REQUIRE(parsed);
  BOOST_TEST(std::abs(parsed->rope_scaling.attention_factor - 1.138629436)
             < 1e-9);
  BOOST_TEST(parsed->rope_scaling.original == 2048);
}

BOOST_AUTO_TEST_CASE(dropout_is_noted_and_taken_as_none) {
  BOOST_TEST(parse_config(R"({"attention_dropout":0.1})")->wants_dropout);
  BOOST_TEST(!parse_config(R"({"attention_dropout":0.0})")->wants_dropout);
  BOOST_TEST(
    parse_config(R"({"model_type":"gpt2","resid_pdrop":0.1})")->wants_dropout);
}

BOOST_AUTO_TEST_CASE(gpt2_is_read_by_its_own_keys) {
  const auto parsed = parse_config(R"({"model_type":"gpt2","n_embd":48,
    "n_head":4,"n_layer":3,"n_positions":77,"n_inner":null,"vocab_size":99,
    "layer_norm_epsilon":1e-4,"activation_function":"gelu"})");
  BOOST_REQUIRE_MESSAGE(parsed, why(parsed));
  BOOST_TEST(parsed->hidden_size == 48u);
  BOOST_TEST(parsed->intermediate_size == 192u);
  BOOST_TEST(parsed->num_hidden_layers == 3u);
  BOOST_TEST(parsed->head_dim == 12u);
  BOOST_TEST(parsed->num_key_value_heads == 4u);
  BOOST_TEST(parsed->max_position_embeddings == 77u);
  BOOST_TEST(parsed->rms_norm_eps == 1e-4);
  BOOST_TEST(parsed->tie_word_embeddings);
  BOOST_TEST((mlp_function_of(parsed->hidden_act) == mlp_function::gelu));
  BOOST_TEST(parsed->eos_token_ids.empty()); // 50256 is not below 99
}

BOOST_AUTO_TEST_CASE(windows_are_where_the_family_has_them) {
  auto windows = [](const std::string& json) {
    const auto parsed = parse_config(json);
    BOOST_REQUIRE_MESSAGE(parsed, why(parsed));
    std::vector<std::uint64_t> out;
    for (std::uint64_t i = 0; i < parsed->num_hidden_layers; ++i)
      out.push_back(window_of(*parsed, i));
    return out;
  };
  using list = std::vector<std::uint64_t>;
  const std::string three = R"("num_hidden_layers":3,"sliding_window":9)";
  BOOST_TEST((windows("{" + three + "}") == list{0, 0, 0})); // a llama has none
  BOOST_TEST(
    (windows(R"({"model_type":"mistral",)" + three + "}") == list{9, 9, 9}));
  BOOST_TEST((windows(R"({"model_type":"mistral","num_hidden_layers":2,
                          "sliding_window":null})")
              == list{0, 0}));
  BOOST_TEST(
    (windows(R"({"model_type":"gemma2",)" + three + "}") == list{9, 0, 9}));
  BOOST_TEST(
    (windows(R"({"model_type":"qwen2",)" + three + "}") == list{0, 0, 0}));
  BOOST_TEST((windows(R"({"model_type":"qwen3","use_sliding_window":true,
                          "max_window_layers":2,)"
                      + three + "}")
              == list{0, 0, 9}));
  BOOST_TEST((windows(R"({"model_type":"qwen3","use_sliding_window":true,
      "layer_types":["sliding_attention","full_attention","full_attention"],)"
                      + three + "}")
              == list{9, 0, 0}));
}

const char* const written_again[] = {
  R"({"model_type":"llama","attention_bias":true,"mlp_bias":true,
      "rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,
      "high_freq_factor":4,"original_max_position_embeddings":8192}})",
  R"({"rope_scaling":{"rope_type":"yarn","factor":4,"beta_fast":20}})",
  R"({"rope_scaling":{"rope_type":"dynamic","factor":2}})",
  R"({"model_type":"mistral"})",
  R"({"model_type":"mistral","sliding_window":null})",
  R"({"model_type":"qwen2"})",
  R"({"model_type":"qwen2","use_sliding_window":true})",
  R"({"model_type":"qwen3","attention_bias":true})",
  R"({"model_type":"gpt2"})",
  R"({"model_type":"gpt2","n_inner":7,"tie_word_embeddings":false})",
  R"({"model_type":"mixtral"})",
  R"({"model_type":"mixtral","sliding_window":9,"num_local_experts":4})",
  R"({"model_type":"qwen3_moe","use_sliding_window":true})",
  R"({"model_type":"qwen3_moe","norm_topk_prob":true,"num_experts":60,
      "moe_intermediate_size":7,"router_aux_loss_coef":0})",
  R"({"model_type":"gemma2"})",
  R"({"model_type":"gemma2","attn_logit_softcapping":null,
      "final_logit_softcapping":null,"query_pre_attn_scalar":14.5})",
};

BOOST_DATA_TEST_CASE(every_family_is_read_again, bdata::make(written_again),
                     text) {
  const auto parsed = parse_config(text);
  BOOST_REQUIRE_MESSAGE(parsed, why(parsed));
  const auto again = parse_config(to_json(*parsed));
  BOOST_REQUIRE_MESSAGE(again, why(again));
  BOOST_TEST((*again == *parsed), to_json(*parsed));
}

// What travels with a job: only keys that a peer knows may carry meaning.
BOOST_DATA_TEST_CASE(known_keys_carry_all_of_it, bdata::make(written_again),
                     text) {
  const auto parsed = parse_config(text);
  BOOST_REQUIRE(parsed);
  const auto all = nlohmann::json::parse(to_json(*parsed));
  auto known = nlohmann::json::object();
  for (const std::string_view key : known_keys())
    if (all.contains(std::string(key)))
      known[std::string(key)] = all[std::string(key)];
  const auto again = parse_config(known.dump());
  BOOST_REQUIRE_MESSAGE(again, why(again));
  BOOST_TEST((*again == *parsed));
}

BOOST_AUTO_TEST_CASE(a_written_config_is_read_back) {
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

BOOST_AUTO_TEST_CASE(the_padding_token_of_a_file_is_written_again) {
  const auto padded = parse_config(R"({"vocab_size":10,"pad_token_id":9})");
  BOOST_REQUIRE(padded);
  const auto again = parse_config(to_json(*padded));
  BOOST_REQUIRE(again);
  BOOST_TEST((again->notes.pad_token_id == 9));
  for (const char* none : {R"({"vocab_size":10})", // files have all of these
                           R"({"vocab_size":10,"pad_token_id":null})",
                           R"({"vocab_size":10,"pad_token_id":-1})",
                           R"({"vocab_size":10,"pad_token_id":10})",
                           R"({"vocab_size":10,"pad_token_id":"0"})"}) {
    const auto parsed = parse_config(none);
    BOOST_REQUIRE_MESSAGE(parsed, why(parsed));
    BOOST_TEST(!parsed->notes.pad_token_id);
    BOOST_TEST(to_json(*parsed).find(R"("pad_token_id": null)")
               != std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()
