// runtime/model/hf/generation_config.hpp -- sampling defaults of a model's maker.
//
// From generation_config.json; only the keys in the file apply: a file with
// only token ids leaves the program's defaults. do_sample false means
// temperature 0; true without a temperature means 1, as in transformers.
//
// Errors: a failure names file and key.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace shoal::model {

/// A longer file is refused unread.
inline constexpr std::uint64_t generation_config_bytes_max = 1u << 20;

/// The values in the file; empty for keys that it does not have.
struct generation_defaults {
  std::optional<std::size_t> max_tokens; ///< max_new_tokens
  std::optional<float> temperature;
  std::optional<std::uint32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
  std::optional<std::vector<std::int32_t>> eos_token_ids;

  bool operator==(const generation_defaults&) const = default;
};

/// Reads the text of the file; check() accepts every value that it returns.
result<generation_defaults>
parse_generation_config(std::string_view json,
                        std::string_view where = "generation_config.json");

/// Reads the file of a directory; without the file, no value is set.
result<generation_defaults>
load_generation_config(const std::filesystem::path& directory);

} // namespace shoal::model
