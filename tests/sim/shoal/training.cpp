// tests/sim/shoal/training.cpp -- a small model, and a text with identifiable
// windows.
#include "tests/sim/shoal/training.hpp"

#include "runtime/model/data/corpus.hpp"
#include "runtime/model/units.hpp"

namespace shoal::sim {

namespace {

constexpr std::uint64_t letters = 26;
constexpr std::int64_t length = 8; ///< tokens of a window

runtime::run_config make_run(std::uint64_t kind) {
  runtime::run_config run;
  run.model.vocab_size = 256;
  run.model.hidden_size = 8;
  run.model.intermediate_size = 12;
  run.model.num_hidden_layers = 4;
  run.model.num_attention_heads = 2;
  run.model.num_key_value_heads = 1;
  run.model.head_dim = 4;
  run.model.max_position_embeddings = 8;
  run.model.tie_word_embeddings = kind == 1;
  run.model.bos_token_id.reset();
  run.model.eos_token_ids.clear();
  run.steps = kind == 2 ? 16 : 24;
  run.seq_len = length;
  run.local_batch_size = 1;
  run.global_batch_size = kind == 2 ? 6 : 4;
  run.lr = 1e-3;
  run.validation_freq = 7;
  run.validation_steps = 2;
  run.checkpoint_interval = kind == 0 ? 5 : 9;
  run.keep_latest_k = 2;
  run.copies = kind == 2 ? 2 : 1;
  run.copy_every = kind == 1 ? 3 : 1;
  return run;
}

} // namespace

training::training(std::uint64_t k, std::uint64_t layout, bool d)
  : kind(k), diverges(d), run(make_run(k)) {
  constexpr std::int64_t layouts[][2] = {{-1, -1}, {2, 2}, {2, -1}, {-1, 2},
                                         {3, 1},   {1, 4}, {-1, 3}, {2, 1}};
  const auto& wanted = layouts[layout % std::size(layouts)];
  run.replicate_degree = wanted[0];
  run.pipeline_degree = wanted[1];
  std::vector<std::uint8_t> all;
  for (std::uint64_t w = 0; w < windows(); ++w) {
    all.push_back(std::uint8_t('a' + w / letters));
    all.push_back(std::uint8_t('A' + w % letters));
    for (std::int64_t i = 2; i < length; ++i)
      all.push_back(std::uint8_t('a' + (w + std::uint64_t(i * i)) % 23));
  }
  all.push_back('.');
  model::corpus corpus;
  corpus.train_u8 = all;
  corpus.validation_u8.assign(all.begin(), all.begin() + 5 * length);
  corpus.files = {{"a", false, 0, corpus.train_u8.size()},
                  {"b", true, 0, corpus.validation_u8.size()}};
  text = model::serialise(corpus);
  const model::unit_layout units(run.model);
  entry.id = 0x5105 + k;
  entry.name = "sim";
  entry.run_json = runtime::to_json(run);
  entry.blocks = std::uint32_t(run.model.num_hidden_layers);
  entry.microbatches = std::uint32_t(run.microbatches_per_step());
  entry.block_flops = entry.head_flops = 1'000'000'000;
  // For the planner, in every third run, state so large that it arrives while
  // steps run.
  entry.block_state_bytes =
    layout % 3 == 1 ? 400'000'000 : 16 * units.unit_size(1);
  entry.embed_state_bytes = entry.head_state_bytes = 16 * units.unit_size(0);
  entry.want_replicas = std::int32_t(run.replicate_degree);
  entry.want_stages = std::int32_t(run.pipeline_degree);
  entry.want_schedule = runtime::wanted_schedule(run);
  entry.want_virtual = std::int32_t(run.virtual_degree);
  entry.want_copies = std::uint32_t(run.wanted_copies());
  entry.want_copy_every =
    std::uint32_t(std::max<std::int64_t>(run.copy_every, 0));
  entry.data_bytes = text.size();
}

/// Fewer in a row than would end the run.
bool training::is_bad(std::uint64_t step) const {
  return diverges && (step % 5 == 3 || step == 9);
}

std::size_t training::parameter_bytes() const {
  const model::unit_layout units(run.model);
  std::size_t all = 0;
  for (model::unit_index u = 0; u < units.unit_count(); ++u)
    all += units.unit_size(u) * sizeof(float);
  return all;
}

std::uint64_t training::windows() const {
  return std::uint64_t(run.steps * run.sequences_per_step());
}

std::uint64_t training::window_of(std::span<const std::int32_t> tokens) const {
  if (tokens.size() < 2 || tokens[0] < 'a' || tokens[1] < 'A')
    return windows();
  return std::uint64_t(tokens[0] - 'a') * letters
         + std::uint64_t(tokens[1] - 'A');
}

} // namespace shoal::sim
