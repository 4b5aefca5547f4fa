// runtime/model/data/sequences.hpp -- evaluation text: the documents of files
// (documents.hpp), each a sequence of tokens of its own.
//
// Errors: a failure names the file, the line and the error.
#pragma once

#include "runtime/core/watch.hpp"
#include "runtime/model/data/documents.hpp"
#include "runtime/model/text/tokenizer.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::model {

/// Sequences, and the amount of text in them.
struct text_sequences {
  std::vector<std::vector<token_id>> all;
  std::uint64_t tokens = 0; ///< without those around each text
  /// The text's bytes in UTF-8: as in the files, or, for ids in a file, as
  /// decoded. 0: not known, since there is no tokenizer.
  std::uint64_t bytes = 0;
};

/// How much is read at most: the rest is not looked at.
struct sequence_limits {
  std::uint64_t documents = std::uint64_t(-1);
  /// Windows (evaluate.hpp), each of `window` tokens or what a document has
  /// left; the last document is cut.
  std::uint64_t windows = std::uint64_t(-1);
  std::uint64_t window = 1;
  std::vector<token_id> ends = {}; ///< as corpus_options::ends
};

/// Reads the sequences of files, folders and globs. `by` may be null: then only
/// input_ids are possible, and a text fails with `no_text`.
result<text_sequences>
read_sequences(std::span<const std::string> paths, const model_config& config,
               const tokenizer* by, std::string_view no_text = {},
               const sequence_limits& limits = {},
               reading_report* report = nullptr, const watch& told = {});

} // namespace shoal::model
