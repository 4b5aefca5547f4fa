// tests/apps/train/run_file_test.cpp -- a run written as TOML is the same when
// read.
#include "apps/common/toml_file.hpp"
#include "runtime/jobs/other_names.hpp"
#include "runtime/jobs/run_config.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

namespace bdata = boost::unit_test::data;

namespace shoal::apps {

BOOST_AUTO_TEST_SUITE(run_file)

namespace {

const char* const models[] = {
  R"({"model_type":"llama","rope_scaling":{"rope_type":"llama3","factor":8,
      "low_freq_factor":1,"high_freq_factor":4,
      "original_max_position_embeddings":8192}})",
  R"({"model_type":"llama"})",
  R"({"model_type":"mistral","sliding_window":null})",
  R"({"model_type":"mistral","sliding_window":77})",
  R"({"model_type":"qwen2","use_sliding_window":true})",
  R"({"model_type":"qwen3"})",
  R"({"model_type":"gpt2"})",
  R"({"model_type":"gemma2"})",
  R"({"model_type":"mixtral"})",
  R"({"model_type":"qwen3_moe","use_sliding_window":true})",
  R"({"model_type":"gemma2","final_logit_softcapping":null})",
};

} // namespace

BOOST_DATA_TEST_CASE(any_family_is_read_again, bdata::make(models), text) {
  const auto run =
    runtime::parse_run(std::string(R"({"model":)") + text + "}", "first");
  BOOST_REQUIRE_MESSAGE(run, (run ? "" : run.message()));
  const std::string toml = runtime::to_toml(*run);
  const auto again =
    runtime::parse_run(toml_text_to_json(toml, "run.toml"), "second");
  BOOST_REQUIRE_MESSAGE(again, (again ? "" : again.message()) << "\n" << toml);
  BOOST_TEST((again->model == run->model), toml);
}

namespace {

model::model_config sized(const std::string& keys) {
  const auto run = runtime::parse_run(R"({"model":{)" + keys + "}}", "sized");
  BOOST_REQUIRE_MESSAGE(run, (run ? "" : run.message()) << " of " << keys);
  return run->model;
}

} // namespace

BOOST_AUTO_TEST_CASE(sizes_that_are_left_out_follow_hidden_size) {
  for (const auto& [hidden, layers, heads, inner] :
       std::vector<std::array<std::uint64_t, 4>>{{8, 2, 1, 64},
                                                 {32, 2, 1, 128},
                                                 {64, 2, 1, 192},
                                                 {100, 2, 1, 320},
                                                 {160, 2, 2, 448},
                                                 {256, 4, 4, 704},
                                                 {1000, 15, 10, 2688},
                                                 {4096, 32, 64, 10944}})
    BOOST_TEST_CONTEXT("hidden_size " << hidden) {
      const auto c = sized(R"("hidden_size":)" + std::to_string(hidden));
      BOOST_TEST(c.num_hidden_layers == layers);
      BOOST_TEST(c.num_attention_heads == heads);
      BOOST_TEST(c.num_key_value_heads == heads);
      BOOST_TEST(c.head_dim == hidden / heads);
      BOOST_TEST(c.intermediate_size == inner);
    }
  const auto usual = runtime::parse_run("{}", "usual");
  BOOST_REQUIRE(usual);
  BOOST_TEST(usual->model.hidden_size == 256u);
  BOOST_TEST(usual->model.num_hidden_layers == 4u);
}

/// `did you mean --model.n_layer?` said the command line, of a llama.
BOOST_AUTO_TEST_CASE(a_key_of_another_family_is_refused) {
  const auto why = [](const std::string& keys) {
    const auto run = runtime::parse_run(R"({"model":{)" + keys + "}}", "x");
    return run ? std::string() : run.message();
  };
  BOOST_TEST(why(R"("n_layer":3)")
             == "x: model.n_layer is not a key of model_type llama; did you "
                "mean model.num_hidden_layers?");
  BOOST_TEST(why(R"("model_type":"gpt2","n_layer":3)").empty());
  BOOST_TEST(why(R"("model_type":"gpt2","hidden_activation":"gelu")")
               .find("activation_function?")
             != std::string::npos);
  BOOST_TEST(why(R"("model_type":"mixtral","num_local_experts":4)").empty());
  BOOST_TEST(!why(R"("num_local_experts":4)").empty());
}

BOOST_AUTO_TEST_CASE(sizes_that_are_given_stay) {
  const auto c = sized(R"("hidden_size":256,"num_attention_heads":8,
      "num_key_value_heads":2,"intermediate_size":100)");
  BOOST_TEST(c.num_attention_heads == 8u);
  BOOST_TEST(c.num_key_value_heads == 2u);
  BOOST_TEST(c.head_dim == 32u);
  BOOST_TEST(c.intermediate_size == 100u);
  BOOST_TEST(sized(R"("hidden_size":256,"head_dim":128)").num_attention_heads
             == 2u);
  BOOST_TEST(sized(R"("hidden_size":64,"num_attention_heads":16)").head_dim
             == 4u);
  const auto gpt2 =
    sized(R"("model_type":"gpt2","n_embd":128,"n_layer":3,"n_inner":null)");
  BOOST_TEST(gpt2.num_hidden_layers == 3u);
  BOOST_TEST(gpt2.num_attention_heads == 2u);
  BOOST_TEST(gpt2.intermediate_size == 512u); // no gate: 4 times
  BOOST_TEST(sized(R"("model_type":"gemma2","hidden_size":128)").head_dim
             == 64u);
  for (const char* wrong :
       {R"({"model":{"hidden_size":"wide"}})", R"({"model":{"hidden_size":0}})",
        R"({"model":{"hidden_size":12345678901}})",
        R"({"model":{"model_type":7}})", R"({"model":{"hidden_size":1}})"})
    BOOST_TEST(!runtime::parse_run(wrong, "wrong"), wrong);
}

// A run of the default has the JSON that it had before there was a choice.
BOOST_AUTO_TEST_CASE(precision_is_written_only_where_it_is_chosen) {
  const auto usual = runtime::parse_run("{}", "usual");
  const auto chosen = runtime::parse_run(
    R"({"training":{"mixed_precision_param":"bfloat16"}})", "chosen");
  BOOST_REQUIRE(usual);
  BOOST_REQUIRE(chosen);
  BOOST_TEST(runtime::to_json(*usual).find("precision") == std::string::npos);
  BOOST_TEST((runtime::factors_of(*usual) == kernels::factor_type::f32));
  const auto again = runtime::parse_run(runtime::to_json(*chosen), "again");
  BOOST_REQUIRE(again);
  BOOST_TEST((runtime::factors_of(*again) == kernels::factor_type::bf16));
  runtime::run_config other = *usual;
  other.mixed_precision_param = "float16";
  BOOST_TEST(!runtime::wrong_words(other).empty());
}

// What a peer says may nest until the library that prints it has no stack.
BOOST_AUTO_TEST_CASE(a_deep_run_is_refused) {
  const std::string deep =
    std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const char* begin :
       {R"({"model":{"vocab_size":)", R"({"roles":[{"parameters":{"a":)"}) {
    const auto run = runtime::parse_run(begin + deep, "job");
    BOOST_REQUIRE(!run);
    BOOST_TEST(run.message() == "job: is nested deeper than 64 levels");
  }
}

/// Within a few units in the last place of the C library's cosine, which
/// differs between libraries.
BOOST_AUTO_TEST_CASE(a_cosine_decay_is_a_cosine) {
  runtime::run_config run;
  run.steps = 1000;
  run.lr = 1;
  run.warmup_steps = 0;
  run.decay_ratio = 1;
  run.decay_type = "cosine";
  run.min_lr_factor = 0;
  for (std::int64_t step = 0; step <= run.steps; ++step) {
    const double want =
      0.5 * (1 + std::cos(std::numbers::pi * double(step) / 1000));
    BOOST_TEST(std::abs(runtime::learning_rate(run, step) - want) < 1e-15);
  }
}

} // namespace shoal::apps

/// Peers of an older version know no such key.
BOOST_AUTO_TEST_CASE(keepers_are_written_where_they_are_chosen) {
  const auto usual = runtime::parse_run("{}", "usual");
  BOOST_REQUIRE(usual);
  BOOST_TEST(runtime::to_json(*usual).find("keepers") == std::string::npos);
  const auto chosen =
    runtime::parse_run(R"({"checkpoint":{"keepers":4}})", "chosen");
  BOOST_REQUIRE(chosen);
  const auto again = runtime::parse_run(runtime::to_json(*chosen), "again");
  BOOST_REQUIRE(again);
  BOOST_TEST(again->checkpoint_keepers == 4);
}

BOOST_AUTO_TEST_CASE(names_of_other_trainers_lead_to_keys) {
  for (const runtime::other_name& o : runtime::other_names()) {
    const auto is_it = [&](const runtime::run_key& k) {
      return o.key == std::string(k.section) + "." + std::string(k.name);
    };
    BOOST_TEST(
      (o.key == "model.path" || std::ranges::any_of(runtime::keys(), is_it)),
      o.name);
  }
  const auto* const steps = runtime::key_called_otherwise("max-steps");
  BOOST_REQUIRE(steps != nullptr);
  BOOST_TEST(steps->key == "training.steps");
  BOOST_TEST(runtime::key_called_otherwise("max_step") == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
