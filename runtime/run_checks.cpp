// runtime/run_checks.cpp -- what concerns several keys of a run at once.
#include "runtime/core/nearest.hpp"
#include "runtime/core/shown.hpp"
#include "runtime/core/training/job_messages.hpp" // what a vote holds
#include "runtime/run_config.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::runtime {

using model::failure;

model::status check_trainable(const model::model_config& m) {
  model::model_config taller = m;
  ++taller.num_hidden_layers;
  const std::uint64_t all = model::tensor_count(m);
  const std::uint64_t block = model::tensor_count(taller) - all;
  const auto refused = [](const std::string& has, std::size_t most) {
    return failure{has + " tensors; at most " + std::to_string(most)
                   + " can be trained, since each vote on a step holds a "
                     "number for each tensor"};
  };
  if (block > core::job_tensors_per_unit_max)
    return refused("a block of this model has " + std::to_string(block),
                   core::job_tensors_per_unit_max);
  if (all > core::job_tensors_max)
    return refused("this model has " + std::to_string(all),
                   core::job_tensors_max);
  return model::done{};
}

model::status check_degrees(const run_config& run) {
  if (run.replicate_degree > run.microbatches_per_step())
    return failure{
      "parallelism.data_parallel_replicate_degree ("
      + std::to_string(run.replicate_degree)
      + ") is more than the microbatches of a step ("
      + std::to_string(run.microbatches_per_step())
      + "): each replica needs one; raise training.global_batch_size, or lower "
        "training.local_batch_size"};
  const auto layers = std::int64_t(run.model.num_hidden_layers);
  if (run.model_path.empty() && run.pipeline_degree > layers)
    return failure{"parallelism.pipeline_parallel_degree ("
                   + std::to_string(run.pipeline_degree)
                   + ") is more than model.num_hidden_layers ("
                   + std::to_string(layers) + "): each stage needs a layer"};
  return model::done{};
}

namespace {

/// One of a few words, spelled as they are.
model::status check_word(std::string_view key, const std::string& word,
                         const std::vector<std::string_view>& known) {
  if (std::ranges::find(known, word) != known.end())
    return model::done{};
  std::string list;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i > 0)
      list += i + 1 == known.size() ? " or " : ", ";
    list += "'" + std::string(known[i]) + "'";
  }
  return failure{std::string(key) + " is '" + core::shown(word) + "'; must be "
                 + list + core::did_you_mean(word, known)};
}

model::status check_words(const run_config& run) {
  const bool as_torchtitan = run.schedule == "1F1B";
  for (const model::status& checked :
       {check_word("data.tokenizer", run.data_tokenizer,
                   {"bytes", "model", "bpe", "auto"}),
        check_word("optimizer.name", run.optimizer_name, {"AdamW"}),
        check_word("parallelism.pipeline_parallel_schedule",
                   as_torchtitan ? "1f1b" : run.schedule,
                   {"auto", "1f1b", "interleaved", "zero_bubble"}),
        check_word("training.mixed_precision_param", run.mixed_precision_param,
                   {"float32", "bfloat16"}),
        check_word("lr_scheduler.decay_type", run.decay_type,
                   {"linear", "sqrt", "cosine"})})
    if (!checked)
      return checked;
  return model::done{};
}

} // namespace

model::status check_run(const run_config& run) {
  if (model::status known = check_words(run); !known)
    return known;
  const bool several = run.schedule == "interleaved";
  const bool single = run.schedule == "1f1b" || run.schedule == "1F1B";
  if ((several && run.virtual_degree == 1)
      || (single && run.virtual_degree > 1))
    return failure{"parallelism.pipeline_parallel_virtual_degree is "
                   + std::to_string(run.virtual_degree) + ", but schedule '"
                   + run.schedule + "' takes "
                   + (several ? "2 or more" : "only 1")};
  if (run.sequences_per_step() % run.local_batch_size != 0)
    return failure{"training.global_batch_size ("
                   + std::to_string(run.sequences_per_step())
                   + ") is not a multiple of training.local_batch_size ("
                   + std::to_string(run.local_batch_size) + ")"};
  if (run.microbatches_per_step() > 4096)
    return failure{"training.global_batch_size makes more than 4096 "
                   "microbatches in a step; raise local_batch_size"};
  if (run.model_path.empty()
      && std::uint64_t(run.seq_len) > run.model.max_position_embeddings)
    return failure{"training.seq_len (" + std::to_string(run.seq_len)
                   + ") is more than model.max_position_embeddings ("
                   + std::to_string(run.model.max_position_embeddings) + ")"};
  if (model::status possible = check_degrees(run); !possible)
    return possible;
  if (run.layers_per_stage.size() > 64)
    return failure{"parallelism.pipeline_parallel_layers_per_stage has more "
                   "than 64 entries"};
  if (!run.layers_per_stage.empty()) {
    std::int64_t sum = 0;
    for (std::int64_t blocks : run.layers_per_stage)
      sum += blocks;
    const bool degree_differs =
      run.pipeline_degree != -1
      && run.pipeline_degree != std::int64_t(run.layers_per_stage.size());
    if (degree_differs)
      return failure{"parallelism.pipeline_parallel_layers_per_stage has "
                     + std::to_string(run.layers_per_stage.size())
                     + " entries, one for each stage, but "
                       "pipeline_parallel_degree ("
                     + std::to_string(run.pipeline_degree)
                     + ") is another number of stages"};
    if (run.model_path.empty()
        && std::uint64_t(sum) != run.model.num_hidden_layers)
      return failure{"parallelism.pipeline_parallel_layers_per_stage adds up "
                     "to "
                     + std::to_string(sum) + ", the model has "
                     + std::to_string(run.model.num_hidden_layers) + " layers"};
  }
  return model::done{};
}

} // namespace shoal::runtime
