// runtime/model/config.hpp -- what a config.json says about a model.
//
// The names are those of Hugging Face's file. What a file leaves out gets the
// family's usual value. A family is a row of a table of names and switches,
// not a class.
//
// Errors: a failure names the key and says what is possible.
#pragma once

#include "runtime/model/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::model {

/// Upper bounds of what a config.json may ask for: far above any model that
/// exists, low enough that no product of two of them overflows 64 bits.
inline constexpr std::uint64_t width_max = 1u << 20;
inline constexpr std::uint64_t layers_max = 1u << 14;
inline constexpr std::uint64_t vocabulary_max = 1u << 24;
inline constexpr std::uint64_t positions_max = 1u << 24;
/// A config.json of more bytes is refused unread.
inline constexpr std::uint64_t config_bytes_max = 4u << 20;

/// Names and switches of one model family.
struct family {
  std::string_view model_type;   ///< the value of "model_type"
  std::string_view architecture; ///< the entry of "architectures"
};

/// The families that can be run.
const std::vector<family>& families();

/// A checked configuration; the defaults are those of the llama family.
struct model_config {
  std::string model_type = "llama";
  std::uint64_t vocab_size = 32000;
  std::uint64_t hidden_size = 4096;
  std::uint64_t intermediate_size = 11008;
  std::uint64_t num_hidden_layers = 32;
  std::uint64_t num_attention_heads = 32;
  std::uint64_t num_key_value_heads = 32; ///< left out: as many as heads
  std::uint64_t head_dim = 128;           ///< left out: hidden_size / heads
  std::uint64_t max_position_embeddings = 2048;
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000;
  double initializer_range = 0.02;
  bool tie_word_embeddings = false;
  std::string torch_dtype = "float32"; ///< of the files, not of arithmetic
  std::optional<std::int32_t> bos_token_id = 1;
  std::vector<std::int32_t> eos_token_ids = {2}; ///< may be empty

  bool operator==(const model_config&) const = default;
};

/// Reads the text of a config.json. `where` (a path, or "[model]" of a run
/// file) begins every failure. Keys without meaning here are ignored, as
/// files carry many; `known_keys()` lists the others, for callers that want
/// to refuse misspelt ones.
result<model_config>
parse_config(std::string_view json, std::string_view where = "config.json");

/// Checks what parse_config() checks, for a configuration made by hand.
status check_config(const model_config& config,
                    std::string_view where = "config.json");

/// The text of a config.json that transformers can load; it names float32,
/// the type that is written.
std::string to_json(const model_config& config);

/// Every key that parse_config() gives a meaning to.
const std::vector<std::string_view>& known_keys();

} // namespace shoal::model
