// actors/checkpoint/checkpoint_manifest.cpp -- manifests as JSON, with strict
// parsing.
#include "actors/checkpoint/checkpoint_manifest.hpp"

#include "runtime/core/text/hex.hpp"
#include "runtime/files/json.hpp"

#include <algorithm>

namespace shoal::actors {

using json = nlohmann::ordered_json;
using model::failure;

bool plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name[0] != '.'
         && name.find('/') == std::string::npos
         && name.find('\0') == std::string::npos;
}

std::uint64_t manifest::total_bytes() const {
  std::uint64_t sum = 0;
  for (const manifest_file& f : files)
    sum += f.bytes;
  return sum;
}

const manifest_file* manifest::find(std::string_view name) const {
  const auto at = std::ranges::find(files, name, &manifest_file::name);
  return at == files.end() ? nullptr : &*at;
}

bool holds_weights(const manifest& m) {
  return m.has(single_name(model_files)) || m.has(index_name(model_files));
}

bool of_optimizer(const std::string& name) {
  return name.starts_with(optimizer_files);
}

bool carried_on(const std::string& name) {
  return std::ranges::find(carried_names, name) != std::end(carried_names);
}

bool of_text(const std::string& name) {
  return carried_on(name) || name == "config.json";
}

bool without_tokenizer(const std::string& name) {
  return name == "generation_config.json";
}

std::string single_name(const std::string& files) {
  return files + ".safetensors";
}

std::string index_name(const std::string& files) {
  return files + ".safetensors.index.json";
}

std::string to_json(const manifest& m) {
  json files = json::array();
  for (const manifest_file& f : m.files)
    files.push_back({{"name", f.name},
                     {"sha256", core::to_hex(f.digest)},
                     {"bytes", f.bytes}});
  return model::json_text(
    json{{"format", "shoal-checkpoint-1"}, {"step", m.step}, {"files", files}});
}

model::result<manifest> parse_manifest(std::string_view text) {
  if (text.size() > manifest_bytes_max)
    return failure{"manifest: too long"};
  const json all = model::parse_json<json>(text);
  if (all.is_discarded() || !all.is_object()
      || all.value("format", json{}) != "shoal-checkpoint-1"
      || !all.contains("step") || !all["step"].is_number_unsigned()
      || !all.contains("files") || !all["files"].is_array()
      || all["files"].size() > manifest_files_max)
    return failure{"manifest: not a checkpoint's"};
  manifest m;
  m.step = all["step"].get<std::uint64_t>();
  for (const json& f : all["files"]) {
    manifest_file out;
    if (!f.is_object() || !f.contains("name") || !f["name"].is_string()
        || !f.contains("sha256") || !f["sha256"].is_string()
        || !f.contains("bytes") || !f["bytes"].is_number_unsigned())
      return failure{"manifest: a file entry is incomplete"};
    out.name = f["name"].get<std::string>();
    out.bytes = f["bytes"].get<std::uint64_t>();
    if (!plain_name(out.name) || m.has(out.name)
        || !core::from_hex(f["sha256"].get<std::string>(), out.digest))
      return failure{"manifest: bad entry for '" + out.name + "'"};
    m.files.push_back(std::move(out));
  }
  return m;
}

} // namespace shoal::actors
