// apps/submit/run_file.cpp -- merges the layers of a run's description as JSON.
#include "apps/submit/run_file.hpp"

#include "apps/common/toml_file.hpp"
#include "apps/terminal/confirm.hpp" // shell_word
#include "apps/terminal/exit_codes.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/text/utf8.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/hf/generation_config.hpp"
#include "runtime/model/hf/hf_directory.hpp"
#include "runtime/model/text/models/vocabulary.hpp" // vocabulary_tokens_max
#include "runtime/model/text/tokenizer.hpp"
#include "runtime/model/text/trainer/bpe_trainer.hpp"
#include "runtime/model/units.hpp"
#include "runtime/wire/codec.hpp" // name_bytes_max

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace shoal::apps {

using json = nlohmann::ordered_json;
using model::failure;

namespace {

/// Where a value comes from that no run file has, in messages about it.
constexpr const char* given_by =
  "options (flags, SHOAL_ variables, configuration file)";

/// A flag's text in the type of its key.
json typed(const std::string& section, const std::string& key,
           const std::string& text) {
  for (const runtime::run_key& k : runtime::keys()) {
    if (k.section != section || k.name != key)
      continue;
    if (std::holds_alternative<std::string runtime::run_config::*>(k.where))
      return text;
    if (std::holds_alternative<std::vector<std::string> runtime::run_config::*>(
          k.where)) {
      json list = model::parse_json<json>(text);
      return list.is_array() ? list : json::array({text});
    }
    if (std::holds_alternative<
          std::vector<std::int64_t> runtime::run_config::*>(k.where)) {
      json list = model::parse_json<json>(
        text.starts_with("[") ? text : "[" + text + "]");
      return list.is_discarded() ? json(text) : list;
    }
  }
  json value = model::parse_json<json>(text);
  return value.is_discarded() || key == "path" || key == "model_type"
           ? json(text)
           : value;
}

/// A run is stored and sent as JSON and TOML, which allow only UTF-8.
failure not_utf8(const std::string& flag, const std::string& text) {
  return failure{flag + ": '" + core::shown(text)
                 + "' is not UTF-8, as run files must be: rename it, or give "
                   "a link to it"};
}

/// The last file of --data, if it is a run file and no other one is given: it stands
/// where a user means it as such. Empty: none.
std::string run_file_as_text(const run_options& o) {
  std::error_code error;
  if (!o.run_file.empty() || o.data.empty() || !o.data.back().ends_with(".toml")
      || !std::filesystem::is_regular_file(o.data.back(), error))
    return {};
  try {
    const auto run =
      runtime::parse_run(toml_to_json(o.data.back()), o.data.back());
    return run ? o.data.back() : std::string();
  } catch (const toml_error&) {
    return {};
  }
}

/// Puts flags and variables over the present values.
model::status put_flags(const run_options& o, json& all) {
  for (const auto& [name, text] : o.overrides) {
    if (!core::is_utf8(text))
      return not_utf8("--" + name, text);
    const auto dot = name.find('.');
    const std::string section = name.substr(0, dot);
    const std::string key = name.substr(dot + 1);
    all[section][key] = typed(section, key, text);
  }
  if (auto fine = check_data(o.data); !fine)
    return fine.why();
  if (const std::string file = run_file_as_text(o); !file.empty())
    return failure{"--data takes all words up to the next option, and "
                   + core::shown(file)
                   + " is a run file: put it before --data (to learn its text, "
                     "name the folder that it lies in)"};
  if (!o.data.empty())
    all["data"]["paths"] = o.data;
  return model::done{};
}

/// A user may have named texts where a run file belongs.
std::string may_be_text(const run_options& o) {
  std::error_code error;
  if (o.run_text || o.run_file.extension() == ".toml"
      || !std::filesystem::exists(o.run_file, error))
    return {};
  return "; a run file is TOML (`shoal train --example` prints one): if these "
         "are texts to learn, give --data "
         + shell_word(o.run_file.string());
}

model::result<json> keys_of_file(const run_options& o) {
  if (o.run_file.empty())
    return json(json::object());
  try {
    const std::string name = o.run_file.string();
    return model::parse_json_object<json>(
      o.run_text ? toml_text_to_json(*o.run_text, name)
                 : toml_to_json(o.run_file),
      name);
  } catch (const toml_error& e) {
    return failure{e.text + may_be_text(o)};
  }
}

model::result<json> merged(const run_options& o) {
  auto all = keys_of_file(o);
  if (!all)
    return all;
  // The file alone first, so that an error names the file and not a flag.
  if (!o.run_file.empty())
    if (auto alone =
          runtime::parse_run(model::json_text(*all), o.run_file.string());
        !alone)
      return alone.why();
  if (auto put = put_flags(o, *all); !put)
    return put.why();
  return all;
}

/// Resolves "auto". A model whose ids have an unknown meaning must not silently
/// be trained on bytes.
model::status resolve_tokenizer(runtime::run_config& run) {
  if (run.data_tokenizer != "auto")
    return model::done{};
  run.data_tokenizer = "bytes";
  if (run.model_path.empty())
    return model::done{};
  const auto kind = model::kind_of_tokenizer(run.model_path);
  const std::string way_out =
    ": put the model's tokenizer.json there, or train it on bytes all the same "
    "with --data.tokenizer bytes";
  if (!kind)
    return failure{"model.path: " + kind.message() + way_out};
  if (*kind == model::tokenizer_kind::file)
    run.data_tokenizer = "model";
  else if (*kind == model::tokenizer_kind::none
           && run.model.vocab_size != model::byte_tokenizer::byte_count)
    return failure{"model.path: " + run.model_path
                   + " has no tokenizer, and a vocabulary of "
                   + std::to_string(run.model.vocab_size) + " is not bytes"
                   + way_out};
  return model::done{};
}

} // namespace

/// The folder of a model.path that is on the hub.
static model::status
find_model(const run_options& o, runtime::run_config& run) {
  const auto folder = local_model(run.model_path, o.download);
  if (!folder)
    return failure{"model.path: " + folder.message()};
  run.model_path = folder->string();
  return model::done{};
}

bool gives(const run_options& o, const std::string& section,
           const std::string& key) {
  const auto all = merged(o);
  return all && all->contains(section) && (*all)[section].contains(key);
}

model::status check_data(const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (!core::is_utf8(path))
      return not_utf8("--data", path);
  return model::done{};
}

/// A curve that ends at lr_total_steps has its own warm-up, whatever steps follow it.
/// It is part of the run, as peers of all versions have to have the same one.
static void settle_warmup(runtime::run_config& run) {
  if (run.warmup_steps >= 0 || run.lr_total_steps <= 0)
    return;
  runtime::run_config curve;
  curve.steps = run.lr_total_steps;
  run.warmup_steps = curve.warmup();
}

model::result<runtime::run_config>
load_run(const run_options& o, const runtime::run_config& recorded) {
  json all = model::parse_json<json>(runtime::to_json(recorded));
  if (auto put = put_flags(o, all); !put)
    return put.why();
  auto run = runtime::parse_run(model::json_text(all), given_by);
  // Otherwise the run goes on from its checkpoint, wherever that model is now.
  if (run && o.overrides.contains("model.path")) {
    if (auto found = find_model(o, *run); !found)
      return failure{given_by + (": " + found.message())};
    auto config = model::load_config(run->model_path);
    if (!config)
      return failure{given_by + (": model.path: " + config.message())};
    run->model = *config; // which shows whether it is another model
  }
  if (run)
    if (auto resolved = resolve_tokenizer(*run); !resolved)
      return failure{given_by + (": " + resolved.message())};
  if (run)
    settle_warmup(*run);
  return run;
}

model::result<runtime::run_config>
load_run_without_text(const run_options& o, int* code) {
  if (code)
    *code = exit_usage;
  auto all = merged(o);
  if (!all)
    return all.why();
  const json& m = all->contains("model") ? (*all)["model"] : json::object();
  const std::string source = o.run_file.empty() ? given_by
                             : o.overrides.empty()
                               ? o.run_file.string()
                               : o.run_file.string() + " with " + given_by;
  const std::string path_source = // of errors about the model
    o.overrides.contains("model.path") || o.run_file.empty()
      ? given_by
      : o.run_file.string();
  if (m.contains("path") && m.size() > 1)
    for (const auto& [key, value] : m.items())
      if (key != "path")
        return failure{source + ": model.path and model." + core::shown(key)
                       + " exclude each other: the directory says what the "
                         "model is"};
  auto run = runtime::parse_run(model::json_text(*all), source);
  if (!run)
    return run;
  const bool trains = run->data_tokenizer == "bpe";
  if (run->model_path.empty() && !m.contains("vocab_size"))
    run->model.vocab_size = trains ? model::text::bpe_training().vocab_size
                                   : model::byte_tokenizer::byte_count;
  // Every byte is text: none of them begins or ends a sequence. A trained
  // tokenizer has a token for both, the first one.
  if (run->model_path.empty() && !m.contains("bos_token_id"))
    run->model.bos_token_id = trains ? std::optional(0) : std::nullopt;
  if (run->model_path.empty() && !m.contains("eos_token_id"))
    run->model.eos_token_ids.assign(trains ? 1 : 0, 0);
  if (!run->model_path.empty()) {
    if (auto found = find_model(o, *run); !found) {
      if (code)
        *code = exit_failed;
      return failure{path_source + ": " + found.message()};
    }
    auto config = model::load_config(run->model_path);
    if (!config) {
      if (code)
        *code = exit_failed;
      return failure{path_source + ": model.path: " + config.message()};
    }
    run->model = *config;
    if (run->pipeline_degree > std::int64_t(config->num_hidden_layers))
      return failure{source + ": parallelism.pipeline_parallel_degree ("
                     + std::to_string(run->pipeline_degree)
                     + ") is more than the model's layers ("
                     + std::to_string(config->num_hidden_layers)
                     + "): each stage needs a layer"};
    if (!all->contains("training") || !(*all)["training"].contains("seq_len"))
      run->shorten_seq_len(config->max_position_embeddings);
    if (std::uint64_t(run->seq_len) > config->max_position_embeddings)
      return failure{source + ": training.seq_len ("
                     + std::to_string(run->seq_len)
                     + ") is more than the model's max_position_embeddings ("
                     + std::to_string(config->max_position_embeddings) + ")"};
  }
  if (auto resolved = resolve_tokenizer(*run); !resolved) {
    if (code)
      *code = exit_failed;
    return failure{source + ": " + resolved.message()};
  }
  if (run->data_tokenizer == "model" && run->model_path.empty())
    return failure{source
                   + ": data.tokenizer is 'model', but there is no "
                     "model.path"};
  if (trains && !run->model_path.empty())
    return failure{source
                   + ": data.tokenizer is 'bpe', but the model of model.path "
                     "has a vocabulary of its own: leave out one of them"};
  if (trains
      && (run->model.vocab_size < model::text::trained_tokens_min
          || run->model.vocab_size > model::text::vocabulary_tokens_max))
    return failure{
      source + ": model.vocab_size is " + std::to_string(run->model.vocab_size)
      + ", a trained tokenizer has "
      + std::to_string(model::text::trained_tokens_min) + " to "
      + std::to_string(model::text::vocabulary_tokens_max) + " tokens"};
  if (run->data_tokenizer == "bytes" && run->model.vocab_size < 256)
    return failure{source + ": model.vocab_size is "
                   + std::to_string(run->model.vocab_size)
                   + ", the bytes tokenizer needs at least 256"};
  return run;
}

model::result<runtime::run_config> load_run(const run_options& o, int* code) {
  auto run = load_run_without_text(o, code);
  if (run && run->data_tokenizer == "bytes" && run->model_path.empty()
      && o.overrides.contains("model.vocab_size")
      && run->model.vocab_size != model::byte_tokenizer::byte_count)
    return failure{given_by + std::string(": model.vocab_size is ")
                   + std::to_string(run->model.vocab_size)
                   + ", but the text is taken as bytes, which are 256: add "
                     "--tokenizer bpe to train a tokenizer of that many "
                     "tokens, or leave the size out"};
  if (run)
    settle_warmup(*run);
  return run;
}

model::corpus_options
corpus_options_of(const runtime::run_config& run, const model::watch& told) {
  model::corpus_options options;
  options.vocab_size = std::uint32_t(run.model.vocab_size);
  options.validation_permille = std::uint32_t(run.data_validation_permille);
  options.bytes_max = std::uint64_t(run.data_bytes_max);
  options.bytes_max_key = "data.bytes_max";
  options.hidden = run.data_hidden;
  options.told = told;
  return options;
}

model::status
enough_text(const runtime::run_config& run, const model::corpus& text) {
  if (text.train_size() > std::uint64_t(run.seq_len))
    return model::done{};
  const std::uint64_t held_out = text.validation_size();
  const bool all_do = text.train_size() + held_out > std::uint64_t(run.seq_len);
  return failure{
    "only " + core::count_text(text.train_size(), "token")
    + " to train on, fewer than training.seq_len + 1 ("
    + std::to_string(run.seq_len + 1) + "); "
    + (all_do ? "another " + std::to_string(held_out)
                  + " are held out: --data.validation_permille 0 holds out none"
              : "give more text, or a smaller --training.seq_len")};
}

model::result<std::vector<model::token_id>>
model_ends(const model::tokenizer& by, const model::model_config& config,
           const std::filesystem::path& directory) {
  auto said = model::load_generation_config(directory);
  if (!said)
    return said.why();
  std::vector<std::int32_t> ids = config.eos_token_ids;
  if (said->eos_token_ids)
    ids.insert(ids.end(), said->eos_token_ids->begin(),
               said->eos_token_ids->end());
  return model::ends_of_text(by, ids);
}

model::result<model::corpus>
read_text(const runtime::run_config& run, const std::filesystem::path& folder,
          model::corpus_report* report, const model::watch& told) {
  model::corpus_options options = corpus_options_of(run, told);
  std::optional<model::tokenizer> by;
  if (run.data_tokenizer != "bytes") {
    const bool trained = run.data_tokenizer == "bpe";
    options.whole_characters = trained;
    const auto from = trained || !folder.empty()
                        ? folder
                        : std::filesystem::path(run.model_path);
    auto found = model::load_tokenizer(from);
    if (!found)
      return found.why();
    by = *found;
    if (!by)
      return failure{from.string() + ": has no tokenizer"};
    options.by = &*by;
    if (run.data_end_of_text && !trained) {
      auto ends = model_ends(*by, run.model, from);
      if (!ends)
        return ends.why();
      options.ends = *std::move(ends);
    }
  }
  auto text = model::read_corpus(run.data_paths, options, report);
  if (text && report && report->read.ended > 0 && run.data_end_of_text
      && run.data_tokenizer == "model" && options.ends.empty())
    report->notices.push_back(
      "no end-of-text token of the model is known (eos_token_id of config.json "
      "or generation_config.json, eos_token of tokenizer_config.json): none is "
      "put after each \"text\", so the model does not learn where to stop");
  return text;
}

namespace {

model::result<model::tokenizer> parsed(const tokenizer_files& files) {
  auto file = model::text::hf_tokenizer::parse(files.tokenizer, files.config);
  if (!file)
    return file.why();
  return model::tokenizer(std::move(*file));
}

/// Trains a tokenizer on the texts that are not held out.
model::result<model::text::bpe_description>
train_tokenizer(const std::vector<model::text_file>& texts,
                const model::model_config& config, const model::watch& told) {
  std::vector<std::string_view> learned;
  for (const model::text_file& file : texts)
    for (const model::document& d : file.documents) {
      if (!d.ids.empty())
        return failure{d.where
                       + ": has input_ids, but a tokenizer can only be "
                         "trained on \"text\""};
      if (!file.validation)
        learned.push_back(d.text);
    }
  model::text::bpe_training options;
  options.words = model::family_of(config).words;
  options.vocab_size = config.vocab_size;
  options.told = told;
  return model::text::train_bpe(learned, options);
}

std::string
line_of(const model::text::bpe_description& made, std::uint64_t wanted,
        const model::corpus& text, std::uint64_t bytes) {
  char line[200];
  std::snprintf(line, sizeof line,
                "tokenizer: trained %zu tokens; a token is %.2f bytes of the "
                "text",
                made.tokens.size(),
                double(bytes)
                  / double(text.train_size() + text.validation_size()));
  std::string out = line;
  if (made.tokens.size() < wanted)
    out += " (fewer than model.vocab_size = " + std::to_string(wanted)
           + ": no other pair occurs twice)";
  return out;
}

} // namespace

model::result<model::corpus>
read_text_for_tokenizer(runtime::run_config& run, tokenizer_files& made,
                        model::corpus_report& report,
                        const model::watch& told) {
  model::corpus_options options = corpus_options_of(run, told);
  options.whole_characters = true;
  auto texts = model::read_text_files(run.data_paths, options, report.read);
  if (!texts)
    return texts.why();
  std::ranges::move(notices_of(report.read),
                    std::back_inserter(report.notices));
  const std::uint64_t wanted = run.model.vocab_size;
  const auto learned = train_tokenizer(*texts, run.model, told);
  if (!learned)
    return learned.why();
  made.tokenizer = model::text::to_json(*learned);
  made.config = model::text::tokenizer_config_json(
    learned->begin, run.model.max_position_embeddings);
  const auto by = parsed(made);
  if (!by)
    return by.why();
  run.model.vocab_size = learned->tokens.size();
  options.vocab_size = std::uint32_t(run.model.vocab_size);
  options.by = &*by;
  auto text = model::encode_texts(std::move(*texts), options);
  if (text)
    report.notices.push_back(
      line_of(*learned, wanted, *text, report.read.bytes));
  return text;
}

model::result<model::corpus>
read_text(const runtime::run_config& run, const tokenizer_files& trained) {
  const auto by = parsed(trained);
  if (!by)
    return by.why();
  model::corpus_options options = corpus_options_of(run, {});
  options.whole_characters = true;
  options.by = &*by;
  return model::read_corpus(run.data_paths, options);
}

/// Of the user who runs this command.
std::string user_at_host() {
  char host[65] = {}; // Linux allows 64 bytes
  ::gethostname(host, sizeof host - 1);
  passwd entry{}, *user = nullptr;
  std::vector<char> text(std::size_t{1} << 16);
  ::getpwuid_r(::geteuid(), &entry, text.data(), text.size(), &user);
  return core::shown(
    (user ? std::string(user->pw_name) : std::to_string(::geteuid())) + "@"
      + host,
    core::limits::job_user_bytes_max);
}

core::job_entry
make_entry(const runtime::run_config& run, const std::string& name) {
  const model::unit_layout layout(run.model);
  const auto tokens = std::uint64_t(run.local_batch_size * run.seq_len);
  const auto length = std::uint64_t(run.seq_len);
  const model::unit_index head = layout.head_unit();
  // Parameters, gradients and two moments, four bytes each.
  auto state = [&](model::unit_index u) { return 16 * layout.unit_size(u); };
  core::job_entry entry;
  entry.name =
    name.empty() ? "run" : core::shown(name, runtime::codec::name_bytes_max);
  entry.user = user_at_host();
  entry.run_json = runtime::to_json(run);
  entry.blocks = std::uint32_t(run.model.num_hidden_layers);
  entry.microbatches = std::uint32_t(run.microbatches_per_step());
  entry.block_flops = tokens * model::unit_operations(run.model, 1, length);
  entry.head_flops = tokens * model::unit_operations(run.model, head, length);
  entry.block_state_bytes = state(1);
  entry.embed_state_bytes = state(0);
  entry.head_state_bytes = state(head);
  entry.activation_bytes = 4 * model::activation_size(run.model, 1, tokens);
  // Kept values are written by the forward pass and read by the backward pass;
  // the head keeps about a row of logits for each token.
  entry.block_traffic_bytes = 2 * entry.activation_bytes;
  entry.head_traffic_bytes = 8 * tokens * std::uint64_t(run.model.vocab_size);
  entry.priority = std::int32_t(run.priority);
  entry.boundary_bytes = 4 * tokens * std::uint64_t(run.model.hidden_size);
  entry.want_replicas = std::int32_t(run.replicate_degree);
  entry.want_stages = std::int32_t(run.pipeline_degree);
  for (std::int64_t blocks : run.layers_per_stage)
    entry.want_blocks.push_back(std::uint32_t(blocks));
  entry.want_schedule = runtime::wanted_schedule(run);
  entry.want_virtual = std::int32_t(run.virtual_degree);
  entry.want_copies = std::uint32_t(run.wanted_copies());
  entry.want_copy_every =
    std::uint32_t(std::max<std::int64_t>(run.copy_every, 0));
  entry.want_part_keepers =
    std::uint32_t(std::max<std::int64_t>(run.checkpoint_keepers, 0));
  if (!entry.want_blocks.empty())
    entry.want_stages = std::int32_t(entry.want_blocks.size());
  return entry;
}

std::vector<std::string> changed_keys(const run_options& o) {
  std::vector<std::string> out;
  const auto file = keys_of_file(o);
  if (!file)
    return out;
  for (const auto& [name, source] : o.sources) {
    const auto dot = name.find('.');
    const auto section = file->find(name.substr(0, dot));
    if (section == file->end() || !section->is_object()
        || !section->contains(name.substr(dot + 1)))
      continue;
    const json& theirs = (*section)[name.substr(dot + 1)];
    const auto ours = o.overrides.find(name);
    if (ours == o.overrides.end()
          ? theirs == json(o.data)
          : theirs == typed(section.key(), name.substr(dot + 1), ours->second))
      continue;
    out.push_back(name + " is " + model::json_text(theirs) + " in "
                  + o.run_file.string() + ", but " + source + " comes before it"
                  + (ours == o.overrides.end() ? "" : ": " + ours->second));
  }
  return out;
}

std::string who_sets(const run_options& o, const std::string& message) {
  std::string out;
  for (const auto& [name, source] : o.sources)
    if (message.find(name) != std::string::npos)
      out += "; " + source + " sets " + name;
  return out;
}

} // namespace shoal::apps
