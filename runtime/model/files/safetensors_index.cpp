// runtime/model/files/safetensors_index.cpp -- the index of a model's files.
#include "runtime/files/json.hpp"
#include "runtime/model/files/safetensors.hpp"

#include <cstdio>

namespace shoal::model {

std::set<std::string> shard_index::files() const {
  std::set<std::string> out;
  for (const auto& [tensor, file] : weights)
    out.insert(file);
  return out;
}

result<shard_index> parse_index(std::string_view text, std::string_view where) {
  const std::string at(where);
  const auto parsed = parse_json_object(text, where);
  if (!parsed)
    return parsed.why();
  const nlohmann::json& json = *parsed;
  if (!json.contains("weight_map") || !json["weight_map"].is_object())
    return failure{at + ": is not a JSON object with weight_map"};
  if (json["weight_map"].size() > tensors_max)
    return failure{at + ": names more than " + std::to_string(tensors_max)
                   + " tensors"};
  const auto fault_of = [&at](const std::string& tensor, const char* what) {
    return failure{at + ": weight_map: tensor "
                   + core::shown(tensor, json_shown_max) + ": " + what};
  };
  shard_index index;
  for (const auto& [name, file] : json["weight_map"].items()) {
    if (!file.is_string())
      return fault_of(name, "is not the name of a file");
    const auto& text_name = file.get_ref<const std::string&>();
    if (text_name.empty() || text_name == "." || text_name == ".."
        || text_name.find('/') != std::string::npos)
      return fault_of(name, "a file must lie beside the index");
    if (!core::is_shown(text_name)) // errors name it
      return fault_of(name, "the name of its file has a control character");
    index.weights[name] = text_name;
  }
  if (index.files().size() > shards_max)
    return failure{at + ": names more than " + std::to_string(shards_max)
                   + " files"};
  return index;
}

std::string to_json(const shard_index& index, std::uint64_t total_bytes) {
  nlohmann::ordered_json out;
  out["metadata"] = {{"total_size", total_bytes}};
  out["weight_map"] = index.weights;
  return json_text(out, 2) + "\n";
}

std::string
shard_name(std::string_view kind, std::size_t index, std::size_t count) {
  char number[48];
  std::snprintf(number, sizeof number, "-%05zu-of-%05zu.safetensors", index + 1,
                count);
  return std::string(kind) + number;
}

} // namespace shoal::model
