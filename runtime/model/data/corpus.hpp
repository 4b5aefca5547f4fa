// runtime/model/data/corpus.hpp -- makes one blob of tokens of training documents.
//
// Files (documents.hpp) follow each other sorted by relative path, and so do
// the documents of each; between them there is only what the tokenizer puts
// around a text, and between those of a .jsonl file the end-of-text token, if
// asked for. The held-out split is by file: a hash of its relative path
// decides whether a file is validation text, so a file never changes sides when
// other files come or go. Where files are so few or so unequal that this would
// hold out far more than was asked for, the end of each file is held out
// instead. The split depends on the files alone.
//
// The blob is what is sent and stored: header, file boundaries, train tokens,
// validation tokens; one byte per token if the vocabulary has at most 256,
// otherwise four. The same content always has the same bytes.
//
// Errors: a failure names the path; parse_corpus() refuses any blob whose
//         sizes, boundaries or ids do not agree.
#pragma once

#include "runtime/core/watch.hpp"
#include "runtime/model/data/documents.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::model {

class tokenizer;

/// One file's tokens: [first, last) of its split.
struct file_boundary {
  std::string relative;
  bool validation = false;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

/// Tokens of all files. Values are below vocab_size.
struct corpus {
  std::uint32_t vocab_size = 256;
  std::vector<file_boundary> files;
  std::vector<std::uint8_t> train_u8; ///< used if vocab_size <= 256
  std::vector<std::uint8_t> validation_u8;
  std::vector<std::uint32_t> train_u32; ///< used if it is larger
  std::vector<std::uint32_t> validation_u32;

  bool narrow() const noexcept { return vocab_size <= 256; }
  std::uint64_t train_size() const noexcept;
  std::uint64_t validation_size() const noexcept;
  /// Copies tokens [first, first + into.size()). @pre they exist
  void copy_train(std::uint64_t first, std::span<token_id> into) const;
  void copy_validation(std::uint64_t first, std::span<token_id> into) const;
};

struct corpus_report {
  reading_report read;
  std::vector<std::string> notices; ///< of the reading and of the tokenizer
};

struct corpus_options {
  std::uint32_t vocab_size = 256; ///< of the model; for bytes at least 256
  const tokenizer* by = nullptr;  ///< null: bytes
  /// This many thousandths of the hash's range are held out.
  std::uint32_t validation_permille = 50;
  std::uint64_t bytes_max = corpus_bytes_max;
  std::string bytes_max_key; ///< the key that raises it, for the failure
  /// A single text is cut between characters even if `by` is bytes, since a
  /// tokenizer will still be made for it.
  bool whole_characters = false;
  /// The first of these ends each "text" of a .jsonl file (end_text()); empty:
  /// texts have only what the tokenizer puts around them.
  std::vector<token_id> ends = {};
  bool hidden = false; ///< find_files() leaves out nothing as hidden
  watch told;          ///< is told the progress; may be empty
};

/// Whether the file of this relative path is held out.
bool held_out(std::string_view relative, std::uint32_t permille);

/// The documents of one file that are on the same side of the split.
struct text_file {
  std::string relative;
  std::vector<document> documents;
  bool validation = false;
};

/// Reads files and splits them. With two files or more, both sides get at least
/// one: if the hash says otherwise, the file with the lowest (highest) hash
/// changes sides. Of a single file, and of each if that split is far from what
/// was asked for, the last documents are held out; where these are too large,
/// the end of the last one is.
result<std::vector<text_file>>
read_text_files(std::span<const std::string> paths,
                const corpus_options& options, reading_report& report);

/// Makes tokens of texts, each with what the tokenizer puts around a text, and
/// its end.
result<corpus>
encode_texts(std::vector<text_file> texts, const corpus_options& options);

/// Does both.
result<corpus>
read_corpus(std::span<const std::string> paths, const corpus_options& options,
            corpus_report* report = nullptr);

std::vector<std::byte> serialise(const corpus& from);
result<corpus> parse_corpus(std::span<const std::byte> blob);

} // namespace shoal::model
