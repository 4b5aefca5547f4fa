// runtime/jobs/run_config.hpp -- a training run as described by its file,
// resolved.
//
// Sections and names follow torchtitan's. One table (keys()) holds section,
// type, default, bounds and meaning of every key; the run file, flags,
// environment and help are all derived from it, so they cannot differ. [model]
// is separate: either `path`, or the keys of a config.json by their own names.
//
// The resolved configuration travels with the job as JSON (to_json), and every
// peer reads it with the same strict parser.
//
// Errors: model::failure naming section and key, the mistake, and for a
//         misspelt key the nearest one that exists.
#pragma once

#include "kernels/layers/matmul.hpp"
#include "runtime/core/assignment.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/config/config.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shoal::runtime {

/// An entry of [[roles]]: an actor of a plug-in that belongs to the job.
struct role_placement {
  std::string name;
  std::string where = "every_peer"; ///< or "every_stage", or a peer's name
  std::string parameters = "{}";    ///< a JSON object
  friend bool
  operator==(const role_placement&, const role_placement&) = default;
};
inline constexpr std::size_t placements_max = 16; ///< of one job
inline constexpr std::size_t placement_name_bytes_max = 32;
inline constexpr std::size_t placement_parameters_bytes_max = 4096;

struct run_config {
  // [model]
  std::string model_path; ///< empty: `model` with random weights
  model::model_config model;

  // [data]
  std::vector<std::string> data_paths;
  std::string data_tokenizer = "auto"; ///< resolved: bytes, model, bpe
  bool data_end_of_text = true;
  bool data_hidden = false;
  std::int64_t data_validation_permille = 50;
  std::int64_t data_bytes_max = std::int64_t{256} << 20;

  // [job]
  std::string job_name; ///< empty: named like the folder of results
  std::int64_t priority = 0;

  // [training]
  std::int64_t steps = 1000;
  std::int64_t seq_len = 256;
  std::int64_t local_batch_size = 4;   ///< sequences in a microbatch
  std::int64_t global_batch_size = -1; ///< sequences in a step; -1: 4 microb.
  double max_norm = 1.0;
  std::int64_t max_bad_steps = 10;
  std::string mixed_precision_param = "float32"; ///< or "bfloat16"
  std::int64_t seed = 0;

  // [optimizer]
  std::string optimizer_name = "AdamW";
  double lr = 8e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;

  // [lr_scheduler]
  std::int64_t warmup_steps = -1;   ///< -1: a tenth of the steps, at most 200;
                                    ///< load_run() takes lr_total_steps for it
  std::int64_t lr_total_steps = -1; ///< -1: training.steps
  double decay_ratio = 1.0;         ///< fraction of the steps that decays
  std::string decay_type = "cosine";
  double min_lr_factor = 0.1;

  // [parallelism]
  std::int64_t replicate_degree = -1;
  std::int64_t pipeline_degree = -1;
  std::vector<std::int64_t> layers_per_stage; ///< empty: choose
  std::string schedule = "1f1b";
  std::int64_t virtual_degree = -1;

  // [fault_tolerance]
  std::int64_t copies = -1; ///< -1: see wanted_copies()
  std::int64_t copy_every = -1;

  // [checkpoint]
  bool checkpoint_enable = true;
  std::int64_t checkpoint_interval = 500;
  std::int64_t keep_latest_k = 10;
  std::int64_t checkpoint_keepers = -1; ///< -1: they hold whole ones
  std::int64_t checkpoint_patience_seconds = 600;

  // [metrics]
  std::int64_t log_freq = 1;
  bool enable_tensorboard = true;

  // [validation]
  bool validation_enable = true;
  std::int64_t validation_freq = 100;
  std::int64_t validation_steps = 8; ///< microbatches per evaluation

  // [[roles]]
  std::vector<role_placement> roles;

  std::int64_t sequences_per_step() const noexcept {
    return global_batch_size > 0 ? global_batch_size : 4 * local_batch_size;
  }
  std::int64_t microbatches_per_step() const noexcept {
    return sequences_per_step() / local_batch_size;
  }
  /// If the user has asked for no number, one copy is made if possible, and a
  /// missing one is not reported.
  std::int64_t wanted_copies() const noexcept {
    return copies < 0 ? 1 : copies;
  }
  std::int64_t warmup() const noexcept;
  /// Of a run that sets no seq_len: the default, or the model's context.
  void shorten_seq_len(std::uint64_t context) noexcept {
    if (context > 0 && context < std::uint64_t(seq_len))
      seq_len = std::int64_t(context);
  }
};

/// parallelism.pipeline_parallel_schedule; nothing for "auto".
std::optional<core::schedule_kind> wanted_schedule(const run_config& run);

/// The learning rate of step `step` (1 is the first): linear warm-up, then
/// constant, then decay over the last decay_ratio of the steps.
double learning_rate(const run_config& run, std::int64_t step);

/// The type to which the factors of products are rounded.
kernels::factor_type factors_of(const run_config& run);

/// One key of a run file.
struct run_key {
  using place = std::variant<std::string run_config::*, double run_config::*,
                             std::int64_t run_config::*, bool run_config::*,
                             std::vector<std::string> run_config::*,
                             std::vector<std::int64_t> run_config::*>;
  std::string_view section;
  std::string_view name;
  place where;
  double low = 0; ///< of numbers; -1 is also accepted if it is the default
  double high = 0;
  std::string_view help;
};

const std::vector<run_key>& keys();

/// One key of an entry of [[roles]].
struct role_key {
  std::string_view name;
  std::string_view type;
  std::string_view usual; ///< default; empty: required
  std::string_view help;
};
std::span<const role_key> role_keys();

/// "text", "number", "whole number", "true or false", "list of ...".
std::string_view type_text(const run_key& key);

/// Of numbers: "1 to 64, or -1"; else "".
std::string range_text(const run_key& key);

/// The default of a key, in the form of a flag's value; "" for an empty text or
/// list.
std::string default_text(const run_key& key);

/// The same for a key of [model]; "" also if it has no default of its own.
std::string model_default_text(std::string_view name);

/// More would fill a screen, and usually mean that the file is no run file.
inline constexpr std::size_t run_mistakes_max = 20;

/// Reads {"section": {"key": value}}. Unknown keys, wrong types and values out
/// of bounds fail; missing keys keep their defaults. `source` is the name of
/// the file or flag in messages. When model.path is given, [model] may hold no
/// other key, and `model` stays unchanged: the caller loads the directory. All
/// mistakes are reported, each in a line that begins with `source`, up to
/// run_mistakes_max; keys that do not go together are reported only if there is
/// no other mistake.
model::result<run_config>
parse_run(std::string_view json, std::string_view source);

/// The same for what to_json() has written: a key that it lacks did not exist
/// then, and its run goes on as it was.
model::result<run_config>
parse_written_run(std::string_view json, std::string_view source);

/// Keys whose word is not one of the allowed ones; a sentence for each.
std::vector<std::string> wrong_words(const run_config& run);

/// Keys that do not go together (batch sizes divide, seq_len fits, ...). While
/// `model` is unknown (model.path), it is ignored.
std::vector<std::string> wrong_together(const run_config& run);

/// The whole resolved configuration; parse_run reads it back to the same value.
std::string to_json(const run_config& run);

/// In the form of a run file, as saved by a run. [model] has either `path` or
/// the keys.
std::string to_toml(const run_config& run);

} // namespace shoal::runtime
