// runtime/jobs/run_config.cpp -- the table of a run file's keys; reads and
// writes it.
#include "runtime/jobs/run_config.hpp"

#include "runtime/core/job_entry.hpp"             // priority_min
#include "runtime/core/training/job_messages.hpp" // bad_steps_max
#include "runtime/files/json.hpp"
#include "runtime/jobs/run_numbers.hpp"
#include "runtime/model/data/corpus.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numbers>

namespace shoal::runtime {
namespace {

using json = nlohmann::ordered_json;

constexpr double big = most_whole_number;

json value_of(const run_config& run, const run_key& key) {
  return std::visit([&](auto at) { return json(run.*at); }, key.where);
}

/// A JSON value as TOML on one line.
std::string inline_toml(const json& value) {
  std::string out;
  if (value.is_object()) {
    for (const auto& [key, item] : value.items())
      out += (out.empty() ? "{ " : ", ") + model::json_text(json(key)) + " = "
             + inline_toml(item);
    return out.empty() ? "{}" : out + " }";
  }
  if (!value.is_array())
    return model::json_text(value);
  for (const json& item : value)
    out += (out.empty() ? "[" : ", ") + inline_toml(item);
  return out.empty() ? "[]" : out + "]";
}

/// TOML has no null: for keys that null switches off it becomes 0, for others a
/// missing key means none.
std::string toml_line(const std::string& name, const json& value) {
  const bool off = name == "sliding_window" || name == "attn_logit_softcapping"
                   || name == "final_logit_softcapping";
  if (value.is_null())
    return off ? name + " = 0\n" : "";
  return name + " = " + inline_toml(value) + "\n"; // JSON scalars are TOML
}

} // namespace

const std::vector<run_key>& keys() {
  using r = run_config;
  static const std::vector<run_key> table{
    {"data", "paths", &r::data_paths, 0, 0,
     "files, folders or globs of text, or of .jsonl with \"text\" or "
     "\"input_ids\"; also as .gz or .zst"},
    {"data", "tokenizer", &r::data_tokenizer, 0, 0,
     "\"bytes\", \"model\" (tokenizer.json in model.path), \"bpe\" (trained on "
     "the data, of model.vocab_size tokens), or \"auto\" (\"model\", else "
     "\"bytes\")"},
    {"data", "end_of_text", &r::data_end_of_text, 0, 0,
     "put the end-of-text token of model.path's tokenizer behind each \"text\" "
     "of a .jsonl that does not end with one"},
    {"data", "hidden", &r::data_hidden, 0, 0,
     "read also the files and folders of a folder whose names begin with a "
     "dot"},
    {"data", "validation_permille", &r::data_validation_permille, 0, 900,
     "text that is held out, in thousandths: whole files, or the end of each "
     "where files are few or unequal"},
    {"data", "bytes_max", &r::data_bytes_max, 1024,
     double(model::corpus_bytes_max),
     "most text to read, in bytes; more is refused"},
    {"job", "name", &r::job_name, 0, 0,
     "what `shoal jobs` and `shoal attach` call the job (default: the name of "
     "the folder --out, or that of the run that is resumed)"},
    {"job", "priority", &r::priority, double(core::priority_min),
     double(core::priority_max),
     "jobs of higher priority choose peers and take memory first, also from "
     "jobs that run; jobs on one peer still take turns on its processor"},
    {"training", "steps", &r::steps, 1, 1e12, "optimizer steps"},
    {"training", "seq_len", &r::seq_len, 1, 1 << 24,
     "tokens in a sequence; where it is not set, no more than the model's "
     "max_position_embeddings"},
    {"training", "local_batch_size", &r::local_batch_size, 1, 65536,
     "sequences in a microbatch"},
    {"training", "global_batch_size", &r::global_batch_size, 1, 1 << 24,
     "sequences in a step; -1: four microbatches"},
    {"training", "max_norm", &r::max_norm, 0, 1e9,
     "clip gradients to this norm; 0: off"},
    {"training", "max_bad_steps", &r::max_bad_steps, 1, core::bad_steps_max,
     "a step whose loss or gradient norm is not finite changes nothing; so "
     "many "
     "in a row end the run as failed"},
    {"training", "mixed_precision_param", &r::mixed_precision_param, 0, 0,
     "factors of matrix products: float32, or bfloat16 where the processor has "
     "it; parameters and sums stay float32"},
    {"training", "seed", &r::seed, 0, big,
     "seed of the weights and of the order of the data"},
    {"optimizer", "name", &r::optimizer_name, 0, 0, "only \"AdamW\" so far"},
    {"optimizer", "lr", &r::lr, 0, 1e3, "highest learning rate"},
    {"optimizer", "beta1", &r::beta1, 0, 1, "decay of the first moment"},
    {"optimizer", "beta2", &r::beta2, 0, 1, "decay of the second moment"},
    {"optimizer", "eps", &r::eps, 0, 1, "added to the root"},
    {"optimizer", "weight_decay", &r::weight_decay, 0, 1e3, "decoupled"},
    {"lr_scheduler", "warmup_steps", &r::warmup_steps, 0, 1e12,
     "linear from 0; -1: a tenth of total_steps, at most 200"},
    {"lr_scheduler", "total_steps", &r::lr_total_steps, 1, 1e12,
     "where the decay ends; -1: training.steps"},
    {"lr_scheduler", "decay_ratio", &r::decay_ratio, 0, 1,
     "part of the steps, at the end, in which the rate decays; 1: all"},
    {"lr_scheduler", "decay_type", &r::decay_type, 0, 0,
     "\"linear\", \"sqrt\" or \"cosine\""},
    {"lr_scheduler", "min_lr_factor", &r::min_lr_factor, 0, 1,
     "part of the highest rate at the end"},
    {"parallelism", "data_parallel_replicate_degree", &r::replicate_degree, 1,
     64, "replicas; -1: choose"},
    {"parallelism", "pipeline_parallel_degree", &r::pipeline_degree, 1, 64,
     "stages; -1: choose"},
    {"parallelism", "pipeline_parallel_layers_per_stage", &r::layers_per_stage,
     1, 65536, "blocks of each stage; empty: choose"},
    {"parallelism", "pipeline_parallel_schedule", &r::schedule, 0, 0,
     "\"1f1b\", \"interleaved\", \"zero_bubble\"; \"auto\": 1f1b or "
     "zero_bubble"},
    {"parallelism", "pipeline_parallel_virtual_degree", &r::virtual_degree, 1,
     16, "runs of blocks on each peer; -1: 1, or for interleaved the best"},
    {"fault_tolerance", "copies", &r::copies, 0, core::copies_max,
     "extra in-memory copies of the training state; this many peers may die at "
     "once without losing a step; -1: 1, where another peer has the memory"},
    {"fault_tolerance", "copy_every", &r::copy_every, 1, core::copy_every_max,
     "copy every N steps (up to N are repeated after a failure); -1: every "
     "step, unless that costs more than 2 %"},
    {"checkpoint", "enable", &r::checkpoint_enable, 0, 0,
     "make checkpoints before the end"},
    {"checkpoint", "interval", &r::checkpoint_interval, 1, 1e12,
     "at most this many steps are repeated if all peers die at once"},
    {"checkpoint", "keep_latest_k", &r::keep_latest_k, 1, 1e6,
     "number of checkpoints to keep; older ones are removed"},
    {"checkpoint", "keepers", &r::checkpoint_keepers, 1, 1024,
     "number of peers that share the parts of each checkpoint, where no disk "
     "has room for all of it; each part is on copies + 1 disks, and on two at "
     "least; -1: that many disks hold whole checkpoints"},
    {"checkpoint", "patience_seconds", &r::checkpoint_patience_seconds, 0, 1e9,
     "seconds to wait for absent peers that hold the newest checkpoint, if "
     "going on without them repeats more than checkpoint.interval steps"},
    {"metrics", "log_freq", &r::log_freq, 1, 1e9,
     "steps between lines of progress where stdout is no terminal"},
    {"metrics", "enable_tensorboard", &r::enable_tensorboard, 0, 0,
     "write event files for TensorBoard"},
    {"validation", "enable", &r::validation_enable, 0, 0,
     "measure the held-out loss"},
    {"validation", "freq", &r::validation_freq, 1, 1e12,
     "steps between evaluations"},
    {"validation", "steps", &r::validation_steps, 1, 4096,
     "microbatches in an evaluation"},
  };
  return table;
}

/// A scalar as typed on a command line; lists without brackets.
static std::string as_flag(const json& value) {
  if (value.is_null())
    return {};
  if (value.is_string())
    return value.get<std::string>();
  if (value.is_number_float())
    return number(value.get<double>());
  if (!value.is_array())
    return model::json_text(value);
  std::string out;
  for (const json& item : value)
    out += (out.empty() ? "" : ",") + as_flag(item);
  return out;
}

std::span<const role_key> role_keys() {
  static constexpr role_key table[] = {
    {"name", "text", "", "of a role that peers' plug-ins have"},
    {"where", "text", "every_peer",
     "`every_peer`, `every_stage` or a peer's name"},
    {"parameters", "table", "{}", "handed to the role as JSON"}};
  return table;
}

std::string_view type_text(const run_key& key) {
  constexpr std::string_view types[] = {
    "text",          "number",        "whole number",
    "true or false", "list of texts", "list of whole numbers"};
  static_assert(std::size(types) == std::variant_size_v<run_key::place>);
  return types[key.where.index()];
}

std::string range_text(const run_key& key) {
  if (!type_text(key).ends_with("number")
      && !type_text(key).ends_with("numbers"))
    return {};
  return number(key.low) + " to " + number(key.high)
         + (may_choose(key) ? ", or -1" : "");
}

std::string default_text(const run_key& key) {
  return as_flag(value_of(run_config{}, key));
}

std::string model_default_text(std::string_view name) {
  static const json all = [] {
    const auto run = parse_run("{}", "defaults");
    return run ? model::parse_json<json>(model::to_json(run->model))
               : json::object();
  }();
  const auto found = all.find(std::string(name));
  return found == all.end() || found->is_object() ? std::string{}
                                                  : as_flag(*found);
}

std::int64_t run_config::warmup() const noexcept {
  if (warmup_steps >= 0)
    return warmup_steps;
  return std::min<std::int64_t>(200, steps / 10);
}

kernels::factor_type factors_of(const run_config& run) {
  return run.mixed_precision_param == "bfloat16" ? kernels::factor_type::bf16
                                                 : kernels::factor_type::f32;
}

std::optional<core::schedule_kind> wanted_schedule(const run_config& run) {
  if (run.schedule == "interleaved")
    return core::schedule_kind::interleaved;
  if (run.schedule == "zero_bubble")
    return core::schedule_kind::zero_bubble;
  if (run.schedule == "auto")
    return std::nullopt;
  return core::schedule_kind::one_f_one_b;
}

namespace {

/// cos(pi * x) for x in [0, 1], to 1e-15: unlike cos(), the same bits in every
/// C library and on every processor. Peers that hold the same state need that.
double cos_of_pi_times(double x) {
  const double y = std::numbers::pi * (0.5 - x); // the sine of y, |y| <= pi / 2
  const double square = y * y;
  double term = y, sum = y;
  for (int n = 3; n <= 23; n += 2) { // error: (pi / 2)^25 / 25! = 5e-21
    term *= -square / double((n - 1) * n);
    sum += term;
  }
  return sum;
}

} // namespace

double learning_rate(const run_config& run, std::int64_t step) {
  const std::int64_t total =
    run.lr_total_steps > 0 ? run.lr_total_steps : run.steps;
  const std::int64_t warmup = std::min(run.warmup(), total);
  if (step <= warmup && warmup > 0)
    return run.lr * double(step) / double(warmup);
  const double decay = run.decay_ratio * double(total - warmup);
  const double left = double(std::max<std::int64_t>(total - step, 0));
  if (decay <= 0 || left >= decay)
    return run.lr;
  const double progress = 1 - left / decay; // 0 .. 1
  double factor = 1 - progress;
  if (run.decay_type == "sqrt")
    factor = 1 - std::sqrt(progress);
  else if (run.decay_type == "cosine")
    factor = 0.5 * (1 + cos_of_pi_times(progress));
  return run.lr * (run.min_lr_factor + (1 - run.min_lr_factor) * factor);
}

std::string to_json(const run_config& run) {
  json all = json::object();
  json described = model::parse_json<json>(model::to_json(run.model));
  json kept = json::object();
  for (std::string_view name : model::known_keys())
    if (described.contains(std::string(name)))
      kept[std::string(name)] = described[std::string(name)];
  if (!run.model_path.empty())
    kept["path"] = run.model_path;
  all["model"] = kept;
  for (const run_key& key : keys())
    all[std::string(key.section)][std::string(key.name)] = value_of(run, key);
  // Left out where it is the default: a run without this key then has the bytes
  // that peers of an older version write, and can read.
  if (factors_of(run) == kernels::factor_type::f32)
    all["training"].erase("mixed_precision_param");
  if (run.copies < 0)
    all["fault_tolerance"].erase("copies");
  if (run.checkpoint_keepers < 0)
    all["checkpoint"].erase("keepers");
  if (run.job_name.empty())
    all["job"].erase("name");
  for (const role_placement& r : run.roles)
    all["roles"].push_back(
      {{"name", r.name},
       {"where", r.where},
       {"parameters", model::parse_json<json>(r.parameters)}});
  return model::json_text(all);
}

std::string to_toml(const run_config& run) {
  json all = model::parse_json<json>(to_json(run));
  std::string text;
  for (const json& r : all.value("roles", json::array())) {
    text += "\n[[roles]]\nname = " + model::json_text(r["name"])
            + "\nwhere = " + model::json_text(r["where"]) + "\n";
    if (!r["parameters"].empty())
      text += "parameters = " + inline_toml(r["parameters"]) + "\n";
  }
  const std::string placed = text;
  text.clear();
  all.erase("roles");
  if (!run.model_path.empty()) // it implies the rest, and excludes it in a file
    all["model"] = {{"path", run.model_path}};
  for (const auto& [section, values] : all.items()) {
    text += (text.empty() ? "[" : "\n[") + section + "]\n";
    for (const auto& [name, value] : values.items())
      if (name != "rope_parameters") // rope_theta and rope_scaling contain it
        text += toml_line(name, value);
  }
  return text + placed;
}

} // namespace shoal::runtime
