// tests/runtime/model/fixture.cpp -- small models, stages and folders.
#include "tests/runtime/model/fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

namespace shoal::tests {

namespace fs = std::filesystem;
using model::token_id;
using model::unit_index;

fs::path golden_folder() {
  const char* named = std::getenv("SHOAL_GOLDEN");
  const fs::path folder = named != nullptr ? named : "tests/golden";
  BOOST_REQUIRE_MESSAGE(fs::is_directory(folder),
                        folder << " is missing; set SHOAL_GOLDEN");
  return folder;
}

std::vector<float>
golden(const model::safetensors_source& from, std::string_view name) {
  const model::stored_tensor* tensor = from.find(name);
  BOOST_REQUIRE(tensor != nullptr);
  std::vector<float> values(tensor->count);
  BOOST_REQUIRE(from.read(name, tensor->shape, values));
  return values;
}

std::vector<token_id> as_ids(std::span<const float> values) {
  std::vector<token_id> ids;
  for (const float value : values)
    ids.push_back(static_cast<token_id>(value));
  return ids;
}

double relative_error(std::span<const float> a, std::span<const float> b) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  double difference = 0;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]))
      return HUGE_VAL;
    difference = std::max<double>(difference, std::abs(double(a[i]) - b[i]));
    largest = std::max<double>(largest, std::abs(b[i]));
  }
  return difference / largest;
}

void write_text(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

model::model_config tiny_config(bool tied) {
  model::model_config config;
  config.vocab_size = 61;
  config.hidden_size = 20;
  config.intermediate_size = 27;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 6;
  config.max_position_embeddings = 40;
  config.initializer_range = 0.2;
  config.tie_word_embeddings = tied;
  config.eos_token_ids.clear();
  return config;
}

model::model_config tiny_family(const std::string& model_type) {
  const model::model_config sizes = tiny_config();
  const auto& all = model::families();
  const auto kind =
    std::ranges::find(all, model_type, &model::family::model_type);
  BOOST_REQUIRE(kind != all.end());
  model::model_config config = kind->usual;
  config.model_type = model_type;
  config.vocab_size = sizes.vocab_size;
  config.hidden_size = sizes.hidden_size;
  config.intermediate_size = sizes.intermediate_size;
  config.num_hidden_layers = sizes.num_hidden_layers;
  config.num_attention_heads = sizes.num_attention_heads;
  config.num_key_value_heads =
    kind->rotary ? sizes.num_key_value_heads : sizes.num_attention_heads;
  config.head_dim = kind->rotary ? sizes.head_dim : 5;
  config.max_position_embeddings = sizes.max_position_embeddings;
  config.initializer_range = sizes.initializer_range;
  config.bos_token_id.reset();
  config.eos_token_ids.clear();
  config.attention_bias = kind->attention_bias_key;
  config.mlp_bias = kind->mlp_bias_key;
  if (kind->windows != model::family::window::none)
    config.sliding_window = 5;
  if (kind->windows == model::family::window::alternate)
    config.sliding_layers = {true, false, true};
  if (kind->windows == model::family::window::upper)
    config.sliding_layers = {false, false, true};
  if (kind->usual.query_pre_attn_scalar != 0)
    config.query_pre_attn_scalar = 3;
  if (kind->usual.attn_logit_softcapping != 0)
    config.attn_logit_softcapping = 1.5;
  if (kind->usual.final_logit_softcapping != 0)
    config.final_logit_softcapping = 2;
  if (kind->usual.num_experts != 0) {
    config.num_experts = 5;
    config.num_experts_per_tok = 2;
    config.router_aux_loss_coef = 0.3;
  }
  if (kind->rotary) {
    config.rope_scaling.type = kernels::rope_scaling::rule::llama3;
    config.rope_scaling.factor = 8;
    config.rope_scaling.original = 30;
  }
  return config;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const model::family& f : model::families())
    names.emplace_back(f.model_type);
  return names;
}

model_rig::model_rig(const model::model_config& config, std::uint64_t seed,
                     std::vector<unit_index> cuts, unsigned threads,
                     kernels::factor_type factors,
                     const model::logits_budget& logits)
  : layout(std::make_shared<const model::unit_layout>(config)) {
  for (unit_index u = 0; u < layout->unit_count(); ++u) {
    units.emplace_back(layout, u, model::purpose::training);
    model::initialise(units.back(), seed);
  }
  build(cuts, threads, factors, logits);
}

model_rig::model_rig(model::model_directory directory,
                     std::vector<unit_index> cuts, unsigned threads)
  : layout(directory.layout), units(std::move(directory.units)) {
  build(cuts, threads);
}

void model_rig::build(const std::vector<unit_index>& cuts, unsigned threads,
                      kernels::factor_type factors,
                      const model::logits_budget& logits) {
  team = std::make_unique<kernels::thread_team>(threads);
  device = kernels::make_cpu_backend(*team);
  std::vector<unit_index> starts = {0};
  starts.insert(starts.end(), cuts.begin(), cuts.end());
  starts.push_back(layout->unit_count());
  for (std::size_t s = 0; s + 1 < starts.size(); ++s) {
    std::vector<model::unit_state*> part;
    for (unit_index u = starts[s]; u < starts[s + 1]; ++u)
      part.push_back(&units[u]);
    stages.push_back(
      std::make_unique<model::stage_model>(part, *device, factors, logits));
  }
}

double model_rig::forward(const std::vector<token_id>& ids,
                          const std::vector<token_id>& targets,
                          std::size_t sequences, float scale, bool keep) {
  const std::size_t d = layout->config().hidden_size;
  std::vector<float> hidden;
  double loss = 0;
  for (auto& stage : stages) {
    std::vector<float> out(stage->has_head() ? 0 : ids.size() * d);
    model::forward_work work;
    work.microbatch = 7;
    work.sequences = sequences;
    work.tokens = ids.size() / sequences;
    if (stage->has_embedding())
      work.ids = ids;
    work.hidden_in = hidden;
    work.hidden_out = out;
    if (stage->has_head())
      work.targets = targets;
    work.loss_scale = scale;
    work.keep = keep;
    loss += stage->forward(work).loss_sum;
    hidden = std::move(out);
  }
  return loss;
}

double
model_rig::loss(const std::vector<token_id>& ids,
                const std::vector<token_id>& targets, std::size_t sequences) {
  return forward(ids, targets, sequences, 0, false);
}

double model_rig::train(const std::vector<token_id>& ids,
                        const std::vector<token_id>& targets,
                        std::size_t sequences, float scale) {
  const double loss = forward(ids, targets, sequences, scale, true);
  const std::size_t d = layout->config().hidden_size;
  std::vector<float> gradient;
  for (auto it = stages.rbegin(); it != stages.rend(); ++it) {
    std::vector<float> in((*it)->has_embedding() ? 0 : ids.size() * d);
    (*it)->input_gradient(7, gradient, in);
    gradient = std::move(in);
  }
  for (auto& stage : stages)
    stage->weight_gradient(7);
  return loss;
}

void model_rig::zero_gradients() {
  for (auto& unit : units)
    unit.zero_gradients(*device);
}

double model_rig::step(kernels::adamw_options options, double norm_max) {
  if (const auto tied = layout->tied()) {
    auto& first = units.front();
    auto& last = units.back();
    model::sum_tied(first.tensor(first.gradients(), tied->embedding),
                    last.tensor(last.gradients(), tied->head), *device);
  }
  std::vector<double> squares;
  for (const auto& unit : units)
    squares.push_back(model::sum_of_squares(unit, *device));
  const double norm = model::gradient_norm(squares);
  options.gradient_scale = model::clip_scale(norm, norm_max);
  for (auto& unit : units)
    model::apply(unit, *device, options);
  return norm;
}

} // namespace shoal::tests
