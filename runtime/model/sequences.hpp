// runtime/model/sequences.hpp -- what a model is evaluated over: the documents
// of files (documents.hpp), each a sequence of tokens of its own.
//
// Errors: a failure names the file, the line and what is wrong.
#pragma once

#include "runtime/model/documents.hpp"
#include "runtime/model/tokenizer.hpp"
#include "runtime/model/watch.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::model {

/// Reads the sequences of files, folders and globs. `by` may be null: then only
/// input_ids are possible.
result<std::vector<std::vector<token_id>>>
read_sequences(std::span<const std::string> paths, const model_config& config,
               const tokenizer* by, reading_report* report = nullptr,
               const watch& told = {});

} // namespace shoal::model
