// runtime/model/data/documents.hpp -- documents in files: the texts on which a
// model is trained or evaluated.
//
//   NAME.jsonl      one document per line: {"text": "..."} or
//                   {"input_ids": [...]}
//   any other name  one document: the whole file
//   NAME.gz, .zst   either of the two, compressed
//
// In a folder or among the matches of a glob, a file is left out and counted if
// it is no text (it has a NUL byte), cannot be read or is too large; if it was
// named itself, that is a failure. It is always a failure if a part of a file
// would be lost silently: a line of a .jsonl file that is no document, or a
// damaged archive.
//
// Cost:   one document and a buffer in memory.
// Errors: a failure names the file; for a .jsonl file the first lines that are
//         no documents, and how many more there are.
#pragma once

#include "kernels/common/tensor.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/data/byte_source.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::model {

using kernels::token_id;

/// Limits: files that are read together; bytes of a file that is one document
/// (it is held in memory); bytes of all, decompressed; bytes of a file's path.
inline constexpr std::size_t corpus_files_max = 1'000'000;
inline constexpr std::uint64_t corpus_file_bytes_max = 1ull << 30;
inline constexpr std::uint64_t corpus_bytes_max = 1ull << 36;
inline constexpr std::size_t corpus_path_bytes_max = 4096;
/// Bytes of one line of a .jsonl file: longer than any book.
inline constexpr std::size_t jsonl_line_bytes_max = 64u << 20;

/// A program that writes a run's results to a folder locks this file in it: what
/// the run writes there (result_names.hpp) is no text, nor is what a model has in a
/// folder with its weights. Other files there are.
inline constexpr char results_lock[] = "run.lock";

/// A file that was found: its path, and its name in the corpus.
struct corpus_file {
  std::string path;
  std::string relative; ///< to the folder that was named; '/' between parts
  bool named = false;   ///< itself, not by its folder or a glob
};

/// Files of one kind: how many, and the first few.
struct file_tally {
  static constexpr std::size_t named_max = 3;
  std::uint64_t count = 0;
  std::vector<std::string> first;

  void add(const std::string& path);
};

/// Files and folders that find_files() leaves out.
struct left_out_files {
  file_tally hidden;
  file_tally results; ///< of runs
};

/// Finds regular files: a path may be a file, a folder (everything below it,
/// links to folders not followed) or a glob. What a run has written to a folder
/// of results is left out, and so is what is hidden in a folder (its name begins
/// with '.': .git, .env), unless it is named itself. Sorted by relative path,
/// each file once. A path that names nothing is a failure. A folder that may not
/// be entered is listed as a file, which then cannot be read.
/// @param left  gets what was left out
/// @param all   leaves out nothing as hidden
result<std::vector<corpus_file>>
find_files(std::span<const std::string> paths, left_out_files* left = nullptr,
           bool all = false);

/// A text, or its tokens if the file contains those.
struct document {
  std::string text;
  std::vector<token_id> ids; ///< if not empty, there is no text
  std::string where;         ///< file, and line of a .jsonl file
  /// A document with its end: a "text" of a .jsonl file. A whole file may be a
  /// part of a text.
  bool ends = false;
};

/// Counts of the files read and left out.
struct reading_report {
  std::uint64_t files = 0; ///< that had documents
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0; ///< of those files, decompressed
  file_tally not_text;     ///< left out
  file_tally unreadable;   ///< left out
  left_out_files left;     ///< not looked at
  file_tally too_large;    ///< left out
  file_tally not_utf8;     ///< read; broken text in them stays or is U+FFFD
  file_tally
    like_json;       ///< read as they are; of JSON objects, in lines or a list
  file_tally masked; ///< whose lines say which tokens to learn: all are
  std::uint64_t ended = 0; ///< documents to end (document::ends)
};

/// The part of it that users should know, as lines; none if all went well.
std::vector<std::string> notices_of(const reading_report& report);

struct reading_options {
  std::uint64_t vocab_size = 0; ///< input_ids are below it
  std::uint64_t bytes_max = corpus_bytes_max;
  /// The key that raises bytes_max, for the failure; empty: there is none.
  std::string bytes_max_key;
};

/// Takes a document of a file. A failure ends the reading.
using take_document = std::function<status(const corpus_file&, document)>;

/// Reads all documents, file by file. An empty text or list of ids is no
/// document.
status read_documents(std::span<const corpus_file> files,
                      const reading_options& options, reading_report& report,
                      const take_document& take);

/// Reads the documents of one file from its bytes; for tests.
/// @param name  decides how they are read
status read_documents(const corpus_file& file, byte_source bytes,
                      const reading_options& options, reading_report& report,
                      const take_document& take);

} // namespace shoal::model
