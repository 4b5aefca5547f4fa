// runtime/jobs/run_checks.cpp -- checks that concern several keys of a run.
#include "runtime/core/text/nearest.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/jobs/run_config.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::runtime {

namespace {

/// Checks that a word is one of a few, in the same case; "" if it is.
std::string wrong_word(std::string_view key, const std::string& word,
                       const std::vector<std::string_view>& known) {
  if (std::ranges::find(known, word) != known.end())
    return {};
  std::string list;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i > 0)
      list += i + 1 == known.size() ? " or " : ", ";
    list += "'" + std::string(known[i]) + "'";
  }
  return std::string(key) + " is '" + core::shown(word) + "'; must be " + list
         + (known.size() == 1 ? "" : core::did_you_mean(word, known));
}

using sentences = std::vector<std::string>;

void check_batches(const run_config& run, sentences& out) {
  if (run.sequences_per_step() % run.local_batch_size != 0) {
    out.push_back("training.global_batch_size ("
                  + std::to_string(run.sequences_per_step())
                  + ") is not a multiple of training.local_batch_size ("
                  + std::to_string(run.local_batch_size) + ")");
    return; // the number of microbatches is unknown
  }
  if (run.microbatches_per_step() > 4096)
    out.push_back("training.global_batch_size makes more than 4096 "
                  "microbatches in a step; raise local_batch_size");
  if (run.replicate_degree > run.microbatches_per_step())
    out.push_back(
      "parallelism.data_parallel_replicate_degree ("
      + std::to_string(run.replicate_degree)
      + ") is more than the microbatches of a step ("
      + std::to_string(run.microbatches_per_step())
      + "): each replica needs one; raise training.global_batch_size, or lower "
        "training.local_batch_size");
}

void check_stages(const run_config& run, sentences& out) {
  const bool several = run.schedule == "interleaved";
  const bool single = run.schedule == "1f1b" || run.schedule == "1F1B";
  if ((several && run.virtual_degree == 1)
      || (single && run.virtual_degree > 1))
    out.push_back("parallelism.pipeline_parallel_virtual_degree is "
                  + std::to_string(run.virtual_degree) + ", but schedule '"
                  + run.schedule + "' takes "
                  + (several ? "2 or more" : "only 1"));
  const auto layers = std::int64_t(run.model.num_hidden_layers);
  if (run.model_path.empty() && run.pipeline_degree > layers)
    out.push_back("parallelism.pipeline_parallel_degree ("
                  + std::to_string(run.pipeline_degree)
                  + ") is more than model.num_hidden_layers ("
                  + std::to_string(layers) + "): each stage needs a layer");
  if (run.layers_per_stage.size() > 64)
    out.push_back("parallelism.pipeline_parallel_layers_per_stage has more "
                  "than 64 entries");
  if (run.layers_per_stage.empty() || run.layers_per_stage.size() > 64)
    return;
  std::int64_t sum = 0;
  for (std::int64_t blocks : run.layers_per_stage)
    sum += blocks;
  if (run.pipeline_degree != -1
      && run.pipeline_degree != std::int64_t(run.layers_per_stage.size()))
    out.push_back("parallelism.pipeline_parallel_layers_per_stage has "
                  + std::to_string(run.layers_per_stage.size())
                  + " entries, one for each stage, but "
                    "pipeline_parallel_degree ("
                  + std::to_string(run.pipeline_degree)
                  + ") is another number of stages");
  else if (run.model_path.empty()
           && std::uint64_t(sum) != run.model.num_hidden_layers)
    out.push_back("parallelism.pipeline_parallel_layers_per_stage adds up to "
                  + std::to_string(sum) + ", the model has "
                  + std::to_string(run.model.num_hidden_layers) + " layers");
}

} // namespace

std::vector<std::string> wrong_words(const run_config& run) {
  const bool as_torchtitan = run.schedule == "1F1B";
  sentences out{wrong_word("data.tokenizer", run.data_tokenizer,
                           {"bytes", "model", "bpe", "auto"}),
                wrong_word("optimizer.name", run.optimizer_name, {"AdamW"}),
                wrong_word("parallelism.pipeline_parallel_schedule",
                           as_torchtitan ? "1f1b" : run.schedule,
                           {"auto", "1f1b", "interleaved", "zero_bubble"}),
                wrong_word("training.mixed_precision_param",
                           run.mixed_precision_param, {"float32", "bfloat16"}),
                wrong_word("lr_scheduler.decay_type", run.decay_type,
                           {"linear", "sqrt", "cosine"})};
  std::erase(out, "");
  return out;
}

std::vector<std::string> wrong_together(const run_config& run) {
  sentences out;
  check_batches(run, out);
  if (run.model_path.empty()
      && std::uint64_t(run.seq_len) > run.model.max_position_embeddings)
    out.push_back("training.seq_len (" + std::to_string(run.seq_len)
                  + ") is more than model.max_position_embeddings ("
                  + std::to_string(run.model.max_position_embeddings) + ")");
  check_stages(run, out);
  return out;
}

} // namespace shoal::runtime
