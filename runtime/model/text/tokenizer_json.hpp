// runtime/model/text/tokenizer_json.hpp -- a byte-level BPE tokenizer as a
// tokenizer.json, and the tokenizer_config.json beside it.
//
// The same fields in the same order as `tokenizers` 0.23 saves, so that
// transformers, vLLM and others read it, and saving it again changes nothing.
#pragma once

#include "runtime/model/config/word_rules.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shoal::model::text {

/// A tokenizer.
struct bpe_description {
  word_rules words = word_rules::gpt2;
  std::vector<std::string> tokens; ///< by id; bytes as byte_level.hpp has them
  /// In their order; each joins two tokens.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> merges;
  /// Comes before each text and is the first token; empty: there is none.
  std::string begin;
};

/// The text of a tokenizer.json.
std::string to_json(const bpe_description& from);

/// The text of a tokenizer_config.json.
/// @param begin  as above: the token that begins a text also ends one
std::string
tokenizer_config_json(const std::string& begin, std::uint64_t length_max);

} // namespace shoal::model::text
