// runtime/jobs/other_names.cpp -- the table of these names.
#include "runtime/jobs/other_names.hpp"

#include <algorithm>
#include <iterator>

namespace shoal::runtime {

namespace {

constexpr std::string_view by_steps =
  "training.steps says how long a run is, in steps of "
  "training.global_batch_size sequences";
constexpr std::string_view of_step = "a step takes training.global_batch_size "
                                     "sequences, of which a device computes "
                                     "training.local_batch_size at once";

// Of the documentation of Hugging Face's TrainingArguments, of the options of nanoGPT,
// Megatron-LM, llama.cpp's finetune and torchtitan, and of what users have tried.
constexpr other_name table[] = {
  {"adam_beta1", "optimizer.beta1"},
  {"adam_beta2", "optimizer.beta2"},
  {"adam_eps", "optimizer.eps"},
  {"adam_epsilon", "optimizer.eps"},
  {"batch_size", "training.global_batch_size", of_step},
  {"block_size", "training.seq_len"},
  {"clip_grad", "training.max_norm"},
  {"context_length", "training.seq_len"},
  {"ctx_size", "training.seq_len"},
  {"data_parallel_degree", "parallelism.data_parallel_replicate_degree"},
  {"data_parallel_size", "parallelism.data_parallel_replicate_degree"},
  {"dataset", "data.paths"},
  {"dataset_path", "data.paths"},
  {"dp", "parallelism.data_parallel_replicate_degree"},
  {"epochs", "training.steps", by_steps},
  {"eval_interval", "validation.freq"},
  {"eval_iters", "validation.steps"},
  {"eval_steps", "validation.freq"},
  {"grad_clip", "training.max_norm"},
  {"gradient_accumulation_steps", "training.global_batch_size", of_step},
  {"learning_rate", "optimizer.lr"},
  {"logging_steps", "metrics.log_freq"},
  {"lr_decay_iters", "lr_scheduler.total_steps"},
  {"max_grad_norm", "training.max_norm"},
  {"max_iters", "training.steps"},
  {"max_length", "training.seq_len"},
  {"max_seq_len", "training.seq_len"},
  {"max_seq_length", "training.seq_len"},
  {"max_steps", "training.steps"},
  {"micro_batch_size", "training.local_batch_size"},
  {"model_name_or_path", "model.path"},
  {"num_epochs", "training.steps", by_steps},
  {"num_train_epochs", "training.steps", by_steps},
  {"per_device_train_batch_size", "training.local_batch_size"},
  {"pipeline_model_parallel_size", "parallelism.pipeline_parallel_degree"},
  {"pipeline_parallel_size", "parallelism.pipeline_parallel_degree"},
  {"pp", "parallelism.pipeline_parallel_degree"},
  {"save_freq", "checkpoint.interval"},
  {"save_interval", "checkpoint.interval"},
  {"save_steps", "checkpoint.interval"},
  {"save_total_limit", "checkpoint.keep_latest_k"},
  {"seq_length", "training.seq_len"},
  {"sequence_length", "training.seq_len"},
  {"tokenizer_name", "data.tokenizer"},
  {"train_iters", "training.steps"},
  {"warmup", "lr_scheduler.warmup_steps"},
  {"warmup_iters", "lr_scheduler.warmup_steps"},
};

} // namespace

std::span<const other_name> other_names() {
  return table;
}

const other_name* key_called_otherwise(std::string_view name) {
  const auto same = [&](const other_name& o) {
    return std::ranges::equal(o.name, name, [](char ours, char theirs) {
      return ours == theirs || (ours == '_' && theirs == '-');
    });
  };
  const auto* const at = std::ranges::find_if(table, same);
  return at == std::end(table) ? nullptr : at;
}

} // namespace shoal::runtime
