// runtime/model/config/default_sizes.cpp -- sizes that follow hidden_size.
#include "runtime/model/config/default_sizes.hpp"

#include "runtime/model/config/config.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace shoal::model {

namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t usual_hidden = 256;
/// The value of most models of this kind: a smaller head sees too little, a
/// larger one means fewer heads.
constexpr std::uint64_t usual_head = 64;
constexpr std::uint64_t width_per_layer = 64;
constexpr std::uint64_t layers_least = 2;
constexpr std::uint64_t layers_most = 32;
/// Kernels for products take 32 rows at once, and two such tiles side by side;
/// a rest costs as much as a whole tile.
constexpr std::uint64_t intermediate_multiple = 64;

/// The spelling of a key that `keys` uses, otherwise the family's own.
std::string
spelled(const ordered_json& keys, const family& kind, std::string_view usual) {
  for (const key_alias& a : kind.aliases)
    if (a.usual == usual && !keys.contains(std::string(usual)))
      return std::string(a.own);
  return std::string(usual);
}

/// @returns nothing for keys that parse_config() will refuse
std::optional<std::uint64_t>
size_in(ordered_json& keys, const std::string& key, std::uint64_t otherwise) {
  if (!keys.contains(key) || keys[key].is_null())
    keys[key] = otherwise;
  if (!keys[key].is_number_unsigned() || keys[key] < 1u
      || keys[key] > width_max)
    return std::nullopt;
  return keys[key].get<std::uint64_t>();
}

std::uint64_t usual_heads(std::uint64_t hidden) {
  for (std::uint64_t heads = hidden / usual_head; heads > 1; --heads)
    if (hidden % heads == 0 && hidden / heads % 2 == 0)
      return heads;
  return 1;
}

} // namespace

void add_default_sizes(ordered_json& keys) {
  std::string type = "llama";
  if (keys.contains("model_type")) {
    if (!keys["model_type"].is_string())
      return;
    type = keys["model_type"].get<std::string>();
  }
  const auto& all = families();
  const auto kind = std::ranges::find(all, type, &family::model_type);
  if (kind == all.end())
    return;
  const auto key = [&](std::string_view usual) {
    return spelled(keys, *kind, usual);
  };
  const auto hidden = size_in(keys, key("hidden_size"), usual_hidden);
  if (!hidden)
    return;
  size_in(keys, key("num_hidden_layers"),
          std::clamp(*hidden / width_per_layer, layers_least, layers_most));
  const std::uint64_t inner = kind->gated ? (8 * *hidden + 2) / 3 : 4 * *hidden;
  const std::uint64_t rounded =
    (inner + intermediate_multiple - 1) / intermediate_multiple;
  size_in(keys, key("intermediate_size"),
          std::min(rounded * intermediate_multiple, width_max));
  const bool sized = keys.contains("head_dim")
                     && keys["head_dim"].is_number_unsigned()
                     && keys["head_dim"] >= 1u;
  const std::uint64_t by_size =
    sized ? std::max<std::uint64_t>(
      1, *hidden / keys["head_dim"].get<std::uint64_t>())
          : 1;
  const auto heads = size_in(keys, key("num_attention_heads"),
                             sized ? by_size : usual_heads(*hidden));
  if (!heads || !kind->rotary)
    return;
  size_in(keys, "num_key_value_heads", *heads);
  if (!sized && *hidden % *heads == 0)
    size_in(keys, "head_dim", *hidden / *heads);
}

} // namespace shoal::model
