// actors/checkpoint/checkpoint_export.cpp -- joins many files into one.
#include "actors/checkpoint/checkpoint_export.hpp"

#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/model/files/safetensors.hpp"
#include "runtime/model/hf/hf_directory.hpp"

namespace shoal::actors {

namespace fs = std::filesystem;
using model::failure;

model::status join_shards(const fs::path& directory, std::uint64_t bytes_max) {
  const fs::path single = directory / single_name(model_files);
  const fs::path listed = directory / index_name(model_files);
  std::error_code error;
  if (fs::exists(single, error) || !fs::exists(listed, error))
    return model::done{};
  auto config = model::load_config(directory);
  if (!config)
    return config.why();
  const model::unit_layout layout(*config);
  if (layout.parameter_count() * sizeof(float) > bytes_max)
    return model::done{};
  auto text = model::read_file(listed, model::header_bytes_max);
  if (!text)
    return text.why();
  auto index = model::parse_index(*text, listed.string());
  if (!index)
    return index.why();
  auto source = model::safetensors_source::open(directory);
  if (!source)
    return source.why();
  std::vector<model::tensor_to_save> tensors;
  for (const model::tensor_info& t : layout.tensors()) {
    if (t.copy_of)
      continue;
    if (auto checked = source->check(t.name, t.shape); !checked)
      return checked;
    const auto values = source->floats(t.name);
    if (values.size() != t.size)
      return model::done{}; // of another type: it is left as it is
    tensors.push_back({t.name, t.shape, values});
  }
  if (auto written = model::write_safetensors(single, tensors); !written)
    return written;
  fs::remove(listed, error);
  for (const std::string& name : index->files())
    fs::remove(directory / name, error);
  return model::done{};
}

model::status join_shards(const fs::path& directory) {
  return join_shards(directory, model::shard_bytes_default);
}

} // namespace shoal::actors
