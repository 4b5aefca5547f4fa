// runtime/run_config.cpp -- the table of a run file's keys, read and written.
#include "runtime/run_config.hpp"

#include "runtime/core/nearest.hpp"
#include "runtime/core/shown.hpp"
#include "runtime/core/training/job_messages.hpp" // bad_steps_max
#include "runtime/core/view.hpp"                  // priority_min
#include "runtime/model/corpus.hpp"
#include "runtime/model/default_sizes.hpp"
#include "runtime/model/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numbers>

namespace shoal::runtime {
namespace {

using json = nlohmann::ordered_json;
using model::failure;

constexpr double big = 1e15;

/// As people write it: whole numbers in full, others with as many digits as
/// tell them apart.
std::string number(double value) {
  char text[32];
  if (value == std::floor(value) && std::abs(value) <= big) {
    std::snprintf(text, sizeof text, "%.0f", value);
    return text;
  }
  std::snprintf(text, sizeof text, "%.17g", value);
  for (int digits = 1; digits < 17; ++digits) {
    char shorter[32];
    std::snprintf(shorter, sizeof shorter, "%.*g", digits, value);
    if (std::strtod(shorter, nullptr) == value)
      return shorter;
  }
  return text;
}

/// Whether -1 stands for "choose": where it is the default.
bool may_choose(const run_key& key) {
  const auto* i = std::get_if<std::int64_t run_config::*>(&key.where);
  return i && key.low > -1 && run_config{}.*(*i) == -1;
}

/// Puts a JSON value where a key says; the sentence if it cannot.
struct put_value {
  run_config& run;
  const run_key& key;
  const json& value;

  std::string range(double x, const std::string& text) const {
    if (x == -1 && may_choose(key))
      return {};
    if (std::isfinite(x) && x >= key.low && x <= key.high)
      return {};
    return "is " + text + ", must be " + (may_choose(key) ? "-1 or " : "")
           + "between " + number(key.low) + " and " + number(key.high);
  }
  std::string is_no(const std::string& type) const {
    return "is " + model::shown(value) + ", must be " + type;
  }
  std::string operator()(std::string run_config::*at) const {
    if (!value.is_string())
      return is_no("a string");
    run.*at = value.get<std::string>();
    return {};
  }
  std::string operator()(double run_config::*at) const {
    if (!value.is_number())
      return is_no("a number");
    run.*at = value.get<double>();
    return range(run.*at, number(run.*at));
  }
  std::string operator()(std::int64_t run_config::*at) const {
    if (!value.is_number_integer())
      return is_no("a whole number");
    if (value.is_number_unsigned()
        && value.get<std::uint64_t>()
             > std::uint64_t(std::numeric_limits<std::int64_t>::max()))
      return "is too large";
    run.*at = value.get<std::int64_t>();
    return range(double(run.*at), std::to_string(run.*at));
  }
  std::string operator()(bool run_config::*at) const {
    if (!value.is_boolean())
      return is_no("true or false");
    run.*at = value.get<bool>();
    return {};
  }
  std::string operator()(std::vector<std::string> run_config::*at) const {
    (run.*at).clear();
    if (value.is_string()) {
      (run.*at).push_back(value.get<std::string>());
      return {};
    }
    if (!value.is_array())
      return "must be a list of strings";
    for (const json& item : value) {
      if (!item.is_string())
        return "must be a list of strings";
      (run.*at).push_back(item.get<std::string>());
    }
    return {};
  }
  std::string operator()(std::vector<std::int64_t> run_config::*at) const {
    (run.*at).clear();
    if (!value.is_array())
      return "must be a list of whole numbers";
    for (const json& item : value) {
      if (!item.is_number_integer())
        return "must be a list of whole numbers";
      (run.*at).push_back(item.get<std::int64_t>());
      const std::int64_t last = (run.*at).back();
      if (std::string wrong = range(double(last), std::to_string(last));
          !wrong.empty())
        return "has an entry that " + wrong;
    }
    return {};
  }
};

/// Where a key that a section lacks may belong: the nearest of its own keys, or
/// the section that has one of this name.
std::string meant_key(std::string_view section, const std::string& name) {
  const auto in_model = [&] {
    std::vector<std::string_view> names = model::known_keys();
    names.push_back("path");
    return names;
  }();
  std::vector<std::string_view> near;
  std::string_view other;
  if (section == "model")
    near = in_model;
  else if (std::ranges::find(in_model, name) != in_model.end())
    other = "model";
  for (const run_key& k : keys())
    if (k.section == section)
      near.push_back(k.name);
    else if (k.name == name && other.empty())
      other = k.section;
  if (!other.empty())
    return ": it is a key of [" + std::string(other) + "]";
  return core::did_you_mean(name, near);
}

model::status
read_model(const json& section, std::string_view source, run_config& run) {
  if (!section.is_object())
    return failure{std::string(source) + ": [model] must be a table"};
  if (section.contains("path")) {
    if (!section["path"].is_string())
      return failure{std::string(source) + ": model.path is "
                     + model::shown(section["path"]) + ", must be a string"};
    run.model_path = section["path"].get<std::string>();
    if (run.model_path.empty())
      return failure{std::string(source)
                     + ": model.path is empty: leave it out, or name a model's "
                       "directory"};
  }
  std::vector<std::string_view> known = model::known_keys();
  known.push_back("path");
  json keys = json::object();
  for (const auto& [name, value] : section.items()) {
    if (std::ranges::find(known, name) == known.end())
      return failure{std::string(source) + ": unknown key model."
                     + core::shown(name) + meant_key("model", name)};
    if (name != "path")
      keys[name] = value;
  }
  if (keys.empty() && !run.model_path.empty())
    return model::done{};
  if (!keys.contains("model_type"))
    keys["model_type"] = "llama";
  model::add_default_sizes(keys);
  auto parsed = model::parse_config(model::json_text(keys),
                                    std::string(source) + ": [model]");
  if (!parsed)
    return parsed.why();
  run.model = *parsed;
  return model::done{};
}

model::status read_section(const std::string& name, const json& section,
                           std::string_view source, run_config& run) {
  const std::string where = std::string(source) + ": ";
  std::vector<std::string_view> sections{"model", "roles"};
  for (const run_key& k : keys())
    sections.push_back(k.section);
  const bool known = std::ranges::find(sections, name) != sections.end();
  if (!known && !section.is_object())
    return failure{where + "'" + core::shown(name)
                   + "' stands outside a section such as [training]"
                   + meant_key({}, name)};
  if (!known)
    return failure{where + "unknown section [" + core::shown(name) + "]"
                   + core::did_you_mean(name, sections)};
  if (!section.is_object())
    return failure{where + "[" + name + "] must be a table"};
  for (const auto& item : section.items()) {
    const std::string& key_name = item.key();
    auto at = std::ranges::find_if(keys(), [&](const run_key& k) {
      return k.section == name && k.name == key_name;
    });
    if (at == keys().end())
      return failure{where + "unknown key " + name + "." + core::shown(key_name)
                     + meant_key(name, key_name)};
    std::string wrong =
      std::visit(put_value{run, *at, item.value()}, at->where);
    if (!wrong.empty())
      return failure{where + name + "." + key_name + " " + wrong};
  }
  return model::done{};
}

/// [[roles]]: a list of tables with name, where and parameters.
model::status
read_roles(const json& list, std::string_view source, run_config& run) {
  const std::string where = std::string(source) + ": [[roles]] ";
  if (!list.is_array())
    return failure{where + "must be a list of tables"};
  if (list.size() > placements_max)
    return failure{where + "has more than " + std::to_string(placements_max)
                   + " entries"};
  for (const json& item : list) {
    if (!item.is_object())
      return failure{where + "must be a list of tables"};
    role_placement made;
    for (const auto& [key, value] : item.items()) {
      if (std::ranges::count(role_keys(), std::string_view(key),
                             &role_key::name)
          == 0) {
        std::string known;
        for (const role_key& k : role_keys())
          known += (known.empty() ? "" : ", ") + std::string(k.name);
        return failure{where + "has no key '" + core::shown(key)
                       + "': " + known};
      }
      if (key == "parameters") {
        if (!value.is_object())
          return failure{where + "parameters must be a table"};
        made.parameters = model::json_text(value);
      } else if (!value.is_string()) {
        return failure{where + key + " must be a string"};
      } else {
        (key == "name" ? made.name : made.where) = value.get<std::string>();
      }
    }
    if (made.name.empty() || made.name.size() > placement_name_bytes_max
        || made.where.empty() || made.where.size() > 128)
      return failure{where
                     + "needs a name (of at most 32 letters) and where: "
                       "\"every_stage\", \"every_peer\" or a peer's name"};
    static const std::vector<std::string_view> places{"every_peer",
                                                      "every_stage"};
    // No peer is called so by intent: its role would be on no peer.
    if (made.where.starts_with("every")
        && std::ranges::find(places, made.where) == places.end())
      return failure{where + made.name + ": where is '"
                     + core::shown(made.where)
                     + "', must be 'every_peer', 'every_stage' or a peer's name"
                     + core::did_you_mean(made.where, places)};
    if (made.parameters.size() > placement_parameters_bytes_max)
      return failure{where + made.name + ": parameters are larger than "
                     + std::to_string(placement_parameters_bytes_max)
                     + " bytes"};
    for (const role_placement& other : run.roles)
      if (other.name == made.name && other.where == made.where)
        return failure{where + "has '" + made.name + "' at " + made.where
                       + " twice"};
    run.roles.push_back(std::move(made));
  }
  return model::done{};
}

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

/// TOML has no null: what is switched off by it is 0 there, and what is left
/// out means none.
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
     "files, folders or globs of text, or of .jsonl with \"text\"; also as .gz "
     "or .zst"},
    {"data", "tokenizer", &r::data_tokenizer, 0, 0,
     "\"bytes\", \"model\" (tokenizer.json in model.path), \"bpe\" (trained on "
     "the data, of model.vocab_size tokens), or \"auto\" (\"model\", else "
     "\"bytes\")"},
    {"data", "validation_permille", &r::data_validation_permille, 0, 900,
     "held-out files per 1000"},
    {"data", "bytes_max", &r::data_bytes_max, 1024,
     double(model::corpus_bytes_max),
     "most text to read, in bytes; more is refused"},
    {"job", "priority", &r::priority, double(core::priority_min),
     double(core::priority_max),
     "jobs of higher priority choose peers and take memory first, also from "
     "jobs that run; jobs on one peer still take turns on its processor"},
    {"training", "steps", &r::steps, 1, 1e12, "optimizer steps"},
    {"training", "seq_len", &r::seq_len, 1, 1 << 24, "tokens in a sequence"},
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
     "linear from 0; -1: a tenth of the steps, at most 200"},
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
     "once without losing a step"},
    {"fault_tolerance", "copy_every", &r::copy_every, 1, core::copy_every_max,
     "copy every N steps (up to N are repeated after a failure); -1: every "
     "step, unless that costs more than 2 %"},
    {"checkpoint", "enable", &r::checkpoint_enable, 0, 0,
     "make checkpoints before the end"},
    {"checkpoint", "interval", &r::checkpoint_interval, 1, 1e12,
     "at most this many steps are repeated if all peers die at once"},
    {"checkpoint", "keep_latest_k", &r::keep_latest_k, 1, 1e6,
     "number of checkpoints to keep; older ones are removed"},
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

/// A scalar as people type it; lists without brackets.
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
/// C library and on every processor, as who holds the same state needs them.
double cos_of_pi_times(double x) {
  const double y = std::numbers::pi * (0.5 - x); // its sine, |y| <= pi / 2
  const double square = y * y;
  double term = y, sum = y;
  for (int n = 3; n <= 23; n += 2) { // pi / 2 to the 25th, over 25!: 5e-21
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

model::result<run_config>
parse_run(std::string_view text, std::string_view source) {
  auto parsed = model::parse_json_object<json>(text, source);
  if (!parsed)
    return parsed.why();
  json all = std::move(*parsed);
  if (!all.contains("model"))
    all["model"] = json::object();
  run_config run;
  for (const auto& [name, section] : all.items()) {
    model::status read = name == "model" ? read_model(section, source, run)
                         : name == "roles"
                           ? read_roles(section, source, run)
                           : read_section(name, section, source, run);
    if (!read)
      return read.why();
  }
  if (model::status checked = check_run(run); !checked)
    return failure{std::string(source) + ": " + checked.message()};
  return run;
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
  // Left out where it is the default, so that a run which does not name it has
  // the bytes that peers of an older version write, and can read.
  if (factors_of(run) == kernels::factor_type::f32)
    all["training"].erase("mixed_precision_param");
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
  if (!run.model_path.empty()) // it says the rest, and excludes it in a file
    all["model"] = {{"path", run.model_path}};
  for (const auto& [section, values] : all.items()) {
    text += (text.empty() ? "[" : "\n[") + section + "]\n";
    for (const auto& [name, value] : values.items())
      if (name != "rope_parameters") // rope_theta and rope_scaling say it too
        text += toml_line(name, value);
  }
  return text + placed;
}

} // namespace shoal::runtime
