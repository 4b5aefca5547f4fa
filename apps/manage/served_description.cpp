// apps/manage/served_description.cpp -- options over what the model's files say.
#include "apps/manage/served_description.hpp"

#include "apps/submit/run_file.hpp"
#include "apps/train/model_folder.hpp"
#include "runtime/core/job_entry.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/model/decode/paged_cache.hpp"
#include "runtime/model/files/safetensors.hpp"
#include "runtime/model/gguf/gguf_directory.hpp"
#include "runtime/model/hf/hf_directory.hpp"
#include "runtime/model/unit_state.hpp" // stored_name
#include "runtime/model/units.hpp"

#include <algorithm>

namespace shoal::apps {

namespace fs = std::filesystem;
using model::failure;

namespace {

/// Of a config.json.
constexpr std::uint64_t config_bytes_max = 16u << 20;

/// Bytes of a value of the blocks' matrices, by the type that config.json names.
std::uint64_t named_bytes(const model::model_config& config) {
  return config.torch_dtype == "float32" ? 4 : 2;
}

/// The same, as they are stored.
model::result<std::uint64_t>
stored_bytes(const fs::path& folder, const model::model_config& config) {
  std::error_code ignored;
  if (!fs::exists(folder / "model.safetensors", ignored)
      && !fs::exists(folder / "model.safetensors.index.json", ignored))
    return named_bytes(config);
  auto files = model::safetensors_source::open(folder);
  if (!files)
    return files.why();
  const model::unit_layout layout(config);
  for (const model::tensor_info& t : layout.tensors_of(1))
    if (t.shape.size() == 2)
      if (const model::stored_tensor* at =
            files->find(model::stored_name(t, *files)))
        return std::uint64_t(at->type == model::stored_type::bf16 ? 2 : 4);
  return std::uint64_t{4};
}

model::result<model::model_config> config_in(const fs::path& file) {
  if (model::gguf::is_file(file))
    return model::gguf::load_config(file);
  if (file.extension() == ".toml") {
    run_options only;
    only.run_file = file;
    auto run = load_run_without_text(only);
    if (!run)
      return run.why();
    return run->model;
  }
  auto text = model::read_file(file, config_bytes_max);
  if (!text)
    return text.why();
  return model::parse_config(*text, file.string(), "");
}

} // namespace

model::result<runtime::serve_config>
describe_served(const serve_options& o, const model::model_config& config,
                std::uint64_t stored_bytes) {
  runtime::serve_config c;
  c.model = config;
  c.stored_bytes = stored_bytes;
  for (const auto type : {kernels::weight_type::bf16, kernels::weight_type::q8,
                          kernels::weight_type::q4})
    if (o.quantize == kernels::name_of(type))
      c.quantize = type;
  const std::uint64_t positions = std::min<std::uint64_t>(
    config.max_position_embeddings, core::serving::tokens_max);
  c.context = o.context == 0 ? positions : o.context;
  if (c.context > positions)
    return failure{"--context: is " + std::to_string(c.context)
                   + ", the model has " + std::to_string(positions)
                   + " positions"};
  c.cache_tokens = o.cache_tokens == 0 ? runtime::usual_cache_tokens(c.context)
                                       : o.cache_tokens;
  if (c.cache_tokens < c.context)
    return failure{"--cache-tokens: is " + std::to_string(c.cache_tokens)
                   + ", must be at least the context, "
                   + std::to_string(c.context)};
  if (o.pipelines == 0)
    c.replicas_max = core::limits::islands_max;
  c.grow_after = o.grow_after;
  c.shrink_after = o.shrink_after;
  c.speculate = o.speculate.value_or(runtime::speculate_usual);
  const bool floats = c.quantize ? false : c.stored_bytes == 4;
  c.kv = o.kv_type.empty()
           ? (floats ? kernels::kv_type::f32 : kernels::kv_type::bf16)
           : *model::kv_type_named(o.kv_type);
  return c;
}

model::result<runtime::serve_config>
describe_served(const serve_options& o, const fs::path& folder) {
  auto config = model::load_config(folder);
  if (!config)
    return config.why();
  auto bytes = stored_bytes(folder, *config);
  if (!bytes)
    return bytes.why();
  return describe_served(o, *config, *bytes);
}

model::result<runtime::serve_config>
describe_without_weights(const serve_options& o) {
  std::error_code ignored;
  if (fs::is_directory(o.model, ignored) || !hub_repository(o.model).empty()) {
    auto folder = model_in(o.model, {false, {}});
    if (!folder)
      return folder.why();
    return describe_served(o, *folder);
  }
  auto config = config_in(o.model);
  if (!config)
    return config.why();
  return describe_served(o, *config, named_bytes(*config));
}

std::string name_of_files(const fs::path& model) {
  if (std::string name = hub_repository(model); !name.empty())
    return name;
  std::error_code error;
  const fs::path whole = fs::canonical(model, error);
  return fs::is_regular_file(whole, error) ? whole.stem() : whole.filename();
}

std::string served_name(const serve_options& o, const std::string& usual) {
  return core::shown(o.name.empty() ? usual : o.name,
                     core::limits::name_bytes_max);
}

core::job_entry
served_entry(const serve_options& o, const runtime::serve_config& config,
             const std::string& name) {
  core::job_entry entry =
    runtime::serve_entry(config, name, std::max(1u, o.pipelines));
  entry.want_stages = o.stages;
  return entry;
}

} // namespace shoal::apps
