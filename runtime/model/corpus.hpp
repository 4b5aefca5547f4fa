// runtime/model/corpus.hpp -- training text: files in, one blob of tokens out.
//
// Files are put one after the other, sorted by relative path. The held-out
// split is by file: a file is validation text if a hash of its relative path
// says so, so that a file never changes sides when others come or go. Files
// with a NUL byte are not text and are skipped, and so is a folder with a run's
// results that lies in a folder of text: a run would read what it writes.
//
// The blob is what travels and is stored: header, file boundaries, train
// tokens, validation tokens; one byte a token if the vocabulary has at most
// 256, else four. It names the same content by the same bytes.
//
// Errors: a failure names the path; parse_corpus() refuses any blob whose
//         sizes, boundaries or ids do not agree.
#pragma once

#include "kernels/tensor.hpp"
#include "runtime/model/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::model {

using kernels::token_id;
class tokenizer;

/// Files of one corpus; one file's bytes; bytes of all; depth of folders.
inline constexpr std::size_t corpus_files_max = 1'000'000;
inline constexpr std::uint64_t corpus_file_bytes_max = 1ull << 30;
inline constexpr std::uint64_t corpus_bytes_max = 1ull << 36;
inline constexpr std::size_t corpus_path_bytes_max = 4096;

/// Who writes a run's results to a folder has locked this file in it.
inline constexpr char results_lock[] = "run.lock";

/// A file that was found: where it is, and its name in the corpus.
struct corpus_file {
  std::string path;
  std::string relative; ///< to the folder that was named; '/' between parts
};

/// Finds regular files: a path may be a file, a folder (all below it, links
/// to folders not followed, folders of results left out) or a glob. Sorted by relative path, each file
/// once. A path that names nothing is a failure.
result<std::vector<corpus_file>> find_files(std::span<const std::string> paths);

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

/// What was left out while reading.
struct corpus_report {
  std::vector<std::string> notices; ///< of the tokenizer
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t skipped_not_text = 0;
  std::uint64_t skipped_too_large = 0;
  std::uint64_t skipped_unreadable = 0;
};

struct corpus_options {
  std::uint32_t vocab_size = 256; ///< of the model; for bytes at least 256
  const tokenizer* by = nullptr;  ///< null: bytes
  /// Files in this many thousandths of the hash's range are held out.
  std::uint32_t validation_permille = 50;
  std::uint64_t bytes_max = corpus_bytes_max;
};

/// Whether the file of this relative path is held out.
bool held_out(std::string_view relative, std::uint32_t permille);

/// Reads files as tokens, each with what the tokenizer puts around a text.
/// With two files or more, both splits get at least
/// one: if the hash says otherwise, the file with the lowest (highest) hash
/// changes sides. A single file is cut: its last part is held
/// out.
result<corpus>
read_corpus(std::span<const std::string> paths, const corpus_options& options,
            corpus_report* report = nullptr);

std::vector<std::byte> serialise(const corpus& from);
result<corpus> parse_corpus(std::span<const std::byte> blob);

} // namespace shoal::model
