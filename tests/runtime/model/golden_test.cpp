// tests/runtime/model/golden_test.cpp -- against PyTorch and transformers.
//
// The files are made by tests/golden/make_goldens.py.
#include "runtime/model/decode/generate.hpp"
#include "tests/runtime/model/fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(golden_files)

namespace bdata = boost::unit_test::data;
using namespace shoal;
using namespace shoal::model;
using namespace shoal::tests;

namespace {

const char* const all_models[] = {
  "tiny_llama",   "tiny_tied",      "tiny_bf16",  "tiny_f16",  "tiny_llama3",
  "tiny_mistral", "tiny_qwen2",     "tiny_qwen3", "tiny_gpt2", "tiny_gemma2",
  "tiny_mixtral", "tiny_qwen3_moe", "tiny_long"};
const char* const trained_models[] = {
  "tiny_llama",   "tiny_tied",      "tiny_llama3", "tiny_mistral",
  "tiny_qwen2",   "tiny_qwen3",     "tiny_gpt2",   "tiny_gemma2",
  "tiny_mixtral", "tiny_qwen3_moe", "tiny_long"};

/// A golden directory and what PyTorch computed from it.
struct golden_model {
  explicit golden_model(const std::string& name, purpose use)
    : rig([&] {
        auto directory = load_directory(golden_folder() / name, use);
        BOOST_REQUIRE_MESSAGE(directory, why(directory));
        return std::move(*directory);
      }()),
      file([&] {
        auto source = safetensors_source::open(golden_folder() / name
                                               / "golden.safetensors");
        BOOST_REQUIRE(source);
        return std::move(*source);
      }()) {}

  model_rig rig;
  safetensors_source file;
};

/// Compares the norm of each tensor's gradient with the golden one of a step.
/// @returns by how much they differ, at most
double check_norms(const golden_model& g, std::size_t step, double tolerance) {
  double worst = 0;
  for (const unit_state& unit : g.rig.units) {
    const auto sums = sums_of_squares(unit, *g.rig.device);
    const auto tensors = g.rig.layout->tensors_of(unit.unit());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].copy_of)
        continue; // counts in its original
      const double expected =
        golden(g.file, "norm." + tensors[i].name).at(step);
      const double error = std::abs(std::sqrt(sums[i]) - expected);
      BOOST_TEST_CONTEXT(tensors[i].name << " in step " << step + 1)
      BOOST_TEST(error <= tolerance * expected);
      worst = std::max(worst, expected > 0 ? error / expected : 0);
    }
  }
  return worst;
}

} // namespace

BOOST_DATA_TEST_CASE(logits_are_those_of_transformers, bdata::make(all_models),
                     name) {
  golden_model g(name, purpose::serving);
  const auto ids = as_ids(golden(g.file, "ids"));
  const auto expected = golden(g.file, "logits");
  std::vector<float> logits(expected.size());
  forward_work work;
  work.sequences = g.file.find("ids")->shape[0];
  work.tokens = g.file.find("ids")->shape[1];
  work.ids = ids;
  work.logits_out = logits;
  work.keep = false;
  g.rig.whole().forward(work);
  const double error = relative_error(logits, expected);
  BOOST_TEST_MESSAGE(name << ": logits differ by " << error);
  BOOST_TEST(error <= 1e-4);
}

BOOST_DATA_TEST_CASE(greedy_tokens_are_those_of_transformers,
                     bdata::make(all_models), name) {
  golden_model g(name, purpose::serving);
  const auto prompt = as_ids(golden(g.file, "prompt"));
  const auto expected = as_ids(golden(g.file, "greedy"));
  generate_options options;
  options.max_tokens = expected.size();
  options.temperature = 0;
  const auto got = generate(g.rig.whole(), nullptr, prompt, options);
  BOOST_REQUIRE(got);
  BOOST_TEST(got->ids == expected, boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(twenty_steps_are_those_of_pytorch,
                     bdata::make(trained_models), name) {
  golden_model g(name, purpose::training);
  const auto shape = g.file.find("train_ids")->shape;
  const auto ids = as_ids(golden(g.file, "train_ids"));
  const auto losses = golden(g.file, "train_losses");
  const auto norms = golden(g.file, "train_norms");
  const std::size_t length = shape[2] - 1;
  const auto predicted = static_cast<double>(shape[1] * length);
  kernels::adamw_options options{3e-3, 0.9, 0.95, 1e-8, 0.1};
  double worst = 0;
  double worst_tensor = 0;
  BOOST_REQUIRE_EQUAL(shape[0], 20u);
  for (std::size_t step = 0; step < shape[0]; ++step) {
    std::vector<token_id> inputs;
    std::vector<token_id> targets;
    for (std::size_t b = 0; b < shape[1]; ++b) {
      const auto* row = &ids[(step * shape[1] + b) * shape[2]];
      inputs.insert(inputs.end(), row, row + length);
      targets.insert(targets.end(), row + 1, row + length + 1);
    }
    g.rig.zero_gradients();
    const double loss =
      g.rig.train(inputs, targets, shape[1], static_cast<float>(1 / predicted))
      / predicted;
    options.step = step + 1;
    const double norm = g.rig.step(options, 1.0);
    worst_tensor = std::max(worst_tensor, check_norms(g, step, 1e-4));
    worst = std::max({worst, std::abs(loss / losses[step] - 1),
                      std::abs(norm / norms[step] - 1)});
  }
  BOOST_TEST_MESSAGE(name << ": losses and norms differ by " << worst
                          << ", norms of single tensors by " << worst_tensor);
  BOOST_TEST(worst <= 1e-4);
  BOOST_TEST(losses.back() < losses.front());
}

BOOST_AUTO_TEST_CASE(scaled_rotary_tables_are_those_of_transformers) {
  const auto file =
    safetensors_source::open(golden_folder() / "rope.safetensors");
  BOOST_REQUIRE(file);
  for (const auto& [rule, json] :
       {std::pair{"linear", R"("factor":3)"},
        std::pair{"dynamic", R"("factor":2)"},
        std::pair{"llama3", R"("factor":8,"low_freq_factor":1,
                    "high_freq_factor":4,
                    "original_max_position_embeddings":256)"},
        std::pair{"yarn", R"("factor":4,
                    "original_max_position_embeddings":512)"}}) {
    const auto config =
      parse_config(std::string(R"({"hidden_size":16,"num_attention_heads":1,
          "rope_scaling":{"rope_type":")")
                   + rule + "\"," + json + "}}");
    BOOST_REQUIRE_MESSAGE(config, why(config));
    const auto table = kernels::make_rope_table(16, 2048, config->rope_theta,
                                                config->rope_scaling);
    for (const bool sine : {false, true}) {
      const auto expected =
        golden(*file, (sine ? "sin." : "cos.") + std::string(rule));
      const auto& all = sine ? table.sin_PH2 : table.cos_PH2;
      std::vector<float> got;
      for (std::size_t p = 0; p < 2048; p += 41)
        got.insert(got.end(), &all[p * 8], &all[p * 8] + 8);
      BOOST_TEST_CONTEXT(rule << (sine ? " sin" : " cos"))
      BOOST_TEST(relative_error(got, expected) <= 1e-6);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
