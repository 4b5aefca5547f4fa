// runtime/model/hf/hf_directory.cpp -- reads and writes Hugging Face directories.
#include "runtime/model/hf/hf_directory.hpp"

#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/files/checksums.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <set>

namespace shoal::model {

namespace fs = std::filesystem;

/// What peft writes beside the weights of a LoRA adapter.
static constexpr const char* adapter_config = "adapter_config.json";

result<model_config> load_config(const fs::path& directory) {
  const fs::path path = directory / "config.json";
  std::error_code ignored;
  if (fs::is_regular_file(directory, ignored))
    return failure{directory.string()
                   + ": is a file; expected the folder of a model, with its "
                     "config.json and model.safetensors"};
  if (const std::string dead = dead_link(path); !dead.empty())
    return failure{directory.string() + ": is no folder of a model: it "
                   + dead};
  if (fs::is_directory(directory, ignored) && !fs::exists(path, ignored)
      && !ignored)
    return failure{directory.string()
                   + (fs::exists(directory / adapter_config, ignored)
                        ? ": is a LoRA adapter, which is not supported: merge "
                          "it into its model first (merge_and_unload() of peft)"
                        : ": is no folder of a model: it has no config.json")};
  auto text = read_file(path, config_bytes_max);
  if (!text)
    return text.why();
  return parse_config(*text, path.string(), "");
}

namespace {

/// Checks every tensor before any memory is allocated: a config.json may claim
/// more than the files hold.
status
check_weights(const unit_layout& layout, const safetensors_source& source) {
  for (const tensor_info& t : layout.tensors()) {
    if (t.copy_of)
      continue;
    if (status checked = source.check(stored_name(t, source), t.shape);
        !checked)
      return checked;
  }
  return done{};
}

/// The weights of a directory, if none is damaged.
result<safetensors_source>
open_weights(const fs::path& directory, const watch& told = {}) {
  if (status whole = check_checksums(directory, "model", told); !whole)
    return whole.why();
  return safetensors_source::open(directory);
}

/// Weights that are checked together: 256 KiB of them stay in any cache.
constexpr std::size_t piece_weights = 1u << 16;

/// Whether the values of a tensor are numbers. @pre source.check() agreed
status check_finite(std::string_view name, std::size_t count,
                    const safetensors_source& source) {
  const stored_values stored = source.stored(name);
  const std::size_t bytes = stored.type == stored_type::f32 ? 4 : 2;
  std::vector<float> piece;
  for (std::size_t first = 0; first < count; first += piece.size()) {
    piece.resize(std::min(piece_weights, count - first));
    widen(stored.type, stored.bytes.data() + first * bytes, piece);
    for (std::size_t i = 0; i < piece.size(); ++i)
      if (!std::isfinite(piece[i]))
        return failure{"tensor " + std::string(name) + ": value "
                       + std::to_string(first + i) + " is no finite number"};
  }
  return done{};
}

/// Of model_directory and inference_directory.
template <class Directory>
void find_tokenizer(const fs::path& directory, Directory& model) {
  if (auto found = tokenizer_for(directory, model.config.vocab_size))
    model.tokenizer = *std::move(found);
  else
    model.no_text = found.message();
}

} // namespace

result<tokenizer>
tokenizer_for(const fs::path& directory, std::size_t vocab_size) {
  auto found = load_tokenizer(directory);
  if (!found)
    return found.why();
  if (!*found)
    return failure{"no tokenizer is among its files"};
  if (vocab_size < (*found)->id_count())
    return failure{"the tokenizer has " + std::to_string((*found)->id_count())
                   + " ids, the model's vocab_size is "
                   + std::to_string(vocab_size)
                   + ": its weights have no row for the tokens that were added "
                     "(in transformers: resize_token_embeddings)"};
  return **std::move(found);
}

status check_directory(const fs::path& directory, const watch& told) {
  const auto config = load_config(directory);
  if (!config)
    return config.why();
  const auto source = open_weights(directory, told);
  if (!source)
    return source.why();
  const unit_layout layout(*config);
  if (status checked = check_weights(layout, *source); !checked)
    return checked;
  std::uint64_t seen = 0;
  for (const tensor_info& t : layout.tensors()) {
    if (t.copy_of)
      continue;
    if (status on =
          tell(told, "checking weights", seen, layout.parameter_count());
        !on)
      return on;
    seen += t.size;
    if (status finite = check_finite(stored_name(t, *source), t.size, *source);
        !finite)
      return failure{directory.string() + ": " + finite.message()};
  }
  return done{};
}

/// Whether the files have a head of its own values, which the config does not
/// provide for.
static bool
has_own_head(const unit_layout& layout, const safetensors_source& source) {
  const tensor_info& head = layout.tensors().back();
  const auto names = source.names();
  if (!head.copy_of || std::ranges::find(names, head.name) == names.end())
    return false;
  const std::string embedding =
    std::string(stored_name(layout.tensors()[*head.copy_of], source));
  if (!source.check(head.name, head.shape)
      || !source.check(embedding, head.shape))
    return false;
  const stored_values own = source.stored(head.name),
                      tied = source.stored(embedding);
  return own.type != tied.type || !std::ranges::equal(own.bytes, tied.bytes);
}

std::string unused_tensors(const fs::path& directory) {
  constexpr std::size_t named_max = 3;
  constexpr std::string_view buffers[] = {".inv_freq", ".attn.bias",
                                          ".masked_bias"};
  std::error_code ignored;
  std::string notes;
  if (fs::exists(directory / adapter_config, ignored))
    notes = directory.string()
            + ": its LoRA adapter is not used, since adapters are not "
              "supported: merge it first (merge_and_unload() of peft)";
  const auto config = load_config(directory);
  const auto source = safetensors_source::open(directory);
  if (!config || !source)
    return notes;
  const unit_layout layout(*config);
  if (has_own_head(layout, *source))
    notes += std::string(notes.empty() ? "" : ". ") + directory.string()
             + ": lm_head.weight of its files is not used, since config.json "
               "says tie_word_embeddings: true; its values are not those of "
               "the embeddings";
  std::set<std::string, std::less<>>
    known; // also tied ones, if files have them
  for (const tensor_info& t : layout.tensors()) {
    known.insert(t.name);
    known.emplace(stored_name(t, *source));
  }
  std::vector<std::string> unused;
  for (const std::string& name : source->names())
    if (!known.contains(name)
        && std::ranges::none_of(
          buffers, [&](std::string_view b) { return name.ends_with(b); }))
      unused.push_back(name);
  if (unused.empty())
    return notes;
  std::string out = notes + (notes.empty() ? "" : ". ") + directory.string()
                    + ": " + core::count_text(unused.size(), "tensor")
                    + " of its files " + (unused.size() == 1 ? "is" : "are")
                    + " not used, since the model that config.json describes ("
                    + core::count_text(config->num_hidden_layers, "layer")
                    + ") has none so named: ";
  for (std::size_t i = 0; i < std::min(named_max, unused.size()); ++i)
    out += (i > 0 ? ", " : "") + core::shown(unused[i]);
  if (unused.size() > named_max)
    out += " and " + std::to_string(unused.size() - named_max) + " more";
  return out;
}

result<model_directory> load_directory(const fs::path& directory, purpose use) {
  auto config = load_config(directory);
  if (!config)
    return config.why();
  auto source = open_weights(directory);
  if (!source)
    return source.why();
  model_directory model;
  model.config = *config;
  model.layout = std::make_shared<const unit_layout>(*config);
  if (status checked = check_weights(*model.layout, *source); !checked)
    return checked.why();
  find_tokenizer(directory, model);
  for (unit_index u = 0; u < model.layout->unit_count(); ++u) {
    model.units.emplace_back(model.layout, u, use);
    if (status loaded = load(model.units.back(), *source); !loaded)
      return loaded.why();
  }
  return model;
}

result<inference_directory>
load_for_inference(const fs::path& directory, weight_choice choice,
                   kernels::backend& device) {
  auto config = load_config(directory);
  if (!config)
    return config.why();
  auto source = open_weights(directory);
  if (!source)
    return source.why();
  inference_directory model;
  model.config = *config;
  model.layout = std::make_shared<const unit_layout>(*config);
  if (status checked = check_weights(*model.layout, *source); !checked)
    return checked.why();
  find_tokenizer(directory, model);
  weights_by_name packed;
  for (unit_index u = 0; u < model.layout->unit_count(); ++u) {
    auto unit =
      inference_unit::load(model.layout, u, *source, choice, device, packed);
    if (!unit)
      return unit.why();
    model.units.push_back(std::move(*unit));
  }
  return model;
}

namespace {

std::string generation_config(const model_config& config) {
  nlohmann::ordered_json o;
  o["_from_model_config"] = true;
  if (config.bos_token_id)
    o["bos_token_id"] = *config.bos_token_id;
  if (config.eos_token_ids.size() == 1)
    o["eos_token_id"] = config.eos_token_ids.front();
  else if (!config.eos_token_ids.empty())
    o["eos_token_id"] = config.eos_token_ids;
  if (config.notes.pad_token_id)
    o["pad_token_id"] = *config.notes.pad_token_id;
  return json_text(o, 2) + "\n";
}

status write_files(const fs::path& into, const unit_layout& layout,
                   std::span<const unit_parameters> units,
                   const save_options& options) {
  std::vector<tensor_to_save> tensors;
  for (const tensor_info& t : layout.tensors()) {
    if (t.copy_of)
      continue;
    const auto values = units[t.unit].values;
    tensors.push_back({t.name, t.shape, values.subspan(t.offset, t.size)});
  }
  if (status s = write_sharded(into, tensors, options.shard_bytes_max); !s)
    return s;
  for (const auto& [name, text] : small_files(layout, options.byte_tokenizer))
    if (status s = write_file(into / name, text); !s)
      return s;
  return done{};
}

/// Whether a file is part of a model, so that it must not outlive the model.
bool part_of_model(const std::string& name) {
  return (name.starts_with("model") && name.ends_with(".safetensors"))
         || name == "model.safetensors.index.json" || name == checksums_name
         || name == "config.json" || name == "generation_config.json"
         || name == "tokenizer_config.json" || name == "tokenizer.json";
}

/// Puts `fresh` in the place of `target`; files there that belong to no model
/// move along.
status take_place(const fs::path& fresh, const fs::path& target) {
  auto fault = [&](const std::string& why) {
    return failure{target.string() + ": cannot replace: " + why};
  };
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(),
                  RENAME_NOREPLACE)
      == 0)
    return done{};
  if (errno != EEXIST && errno != ENOTEMPTY)
    return fault(std::strerror(errno));
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(),
                  RENAME_EXCHANGE)
      != 0)
    return fault(std::strerror(errno));
  std::error_code error; // `fresh` now names the old directory
  std::vector<fs::path> carried;
  for (const auto& entry : fs::directory_iterator(fresh, error)) {
    if (!part_of_model(entry.path().filename().string()))
      carried.push_back(entry.path());
  }
  for (const fs::path& old : carried) {
    if (!error)
      fs::rename(old, target / old.filename(), error);
  }
  if (error)
    return failure{fresh.string() + ": holds what was in " + target.string()
                   + " and could not be carried over: " + error.message()};
  fs::remove_all(fresh, error);
  if (error)
    return failure{fresh.string() + ": cannot remove: " + error.message()};
  return done{};
}

} // namespace

std::vector<std::pair<std::string, std::string>>
small_files(const unit_layout& layout, bool byte_tokenizer) {
  std::vector<std::pair<std::string, std::string>> out;
  if (byte_tokenizer) {
    out.emplace_back("tokenizer.json", model::byte_tokenizer::to_json());
    out.emplace_back("tokenizer_config.json",
                     model::byte_tokenizer::config_json(layout.config()));
  }
  out.emplace_back("generation_config.json",
                   generation_config(layout.config()));
  out.emplace_back("config.json", to_json(layout.config()));
  return out;
}

status save_directory(const fs::path& directory, const unit_layout& layout,
                      std::span<const unit_parameters> units,
                      const save_options& options) {
  SHOAL_ASSERT(units.size() == layout.unit_count());
  for (unit_index u = 0; u < layout.unit_count(); ++u)
    SHOAL_ASSERT(units[u].unit == u
                 && units[u].values.size() == layout.unit_size(u));
  std::error_code error;
  fs::path target = fs::absolute(directory, error).lexically_normal();
  if (!target.has_filename())
    target = target.parent_path();
  if (!error && fs::exists(target) && !fs::is_directory(target))
    return failure{target.string() + ": exists and is no directory"};
  const fs::path fresh =
    target.string() + ".part." + std::to_string(::getpid());
  if (!error)
    fs::remove_all(fresh, error);
  if (!error)
    fs::create_directories(fresh, error);
  if (error)
    return failure{fresh.string() + ": cannot create: " + error.message()};
  status written = write_files(fresh, layout, units, options);
  if (!written) {
    fs::remove_all(fresh, error);
    return written;
  }
  if (status taken = take_place(fresh, target); !taken)
    return taken;
  return sync_directory(target.parent_path());
}

status
save_directory(const fs::path& directory, const unit_layout& layout,
               std::span<const unit_state> units, const save_options& options) {
  std::vector<unit_parameters> views;
  for (const unit_state& unit : units)
    views.push_back({unit.unit(), unit.parameters()});
  return save_directory(directory, layout, views, options);
}

} // namespace shoal::model
