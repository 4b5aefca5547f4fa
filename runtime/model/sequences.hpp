// runtime/model/sequences.hpp -- what a model is evaluated over: texts and lists
// of ids, from files.
//
// Each text file is a sequence of its own, and so is each line of a .jsonl file,
// an object with "text" or "input_ids". A file with a NUL byte is no text.
//
// Errors: a failure names the file, the line and what is wrong.
#pragma once

#include "runtime/model/tokenizer.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::model {

/// Bytes of one line of a .jsonl file.
inline constexpr std::size_t jsonl_line_bytes_max = 64u << 20;

/// Reads the sequences of files, folders and globs (as corpus.hpp finds
/// them). `by` may be null: then only input_ids are possible.
result<std::vector<std::vector<token_id>>>
read_sequences(std::span<const std::string> paths, const model_config& config,
               const tokenizer* by);

/// Adds the sequences of a .jsonl file to `into`. `encoder` may be null.
/// @param path  begins every failure
status read_jsonl(const std::string& path, std::string_view content,
                  const model_config& config, text_encoder* encoder,
                  std::vector<std::vector<token_id>>& into);

} // namespace shoal::model
