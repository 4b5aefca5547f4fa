// runtime/hub/hub_listing.hpp -- the files of a repository at one commit, as
// the hub lists them.
//
// The hub's JSON is foreign: its size, depth and count of files are bounded.
// Files whose path could lead elsewhere are left out, and hashes that are none.
//
// Threads: pure functions. Errors: a failure begins with `where`.
// Source:  https://huggingface.co/docs/hub/api,
//          GET /api/models/{repo}/revision/{revision}?blobs=true
#pragma once

#include "runtime/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::hub {

/// Bytes of the listing. An entry has some 300; the largest repositories of
/// models have some thousand files.
inline constexpr std::size_t listing_bytes_max = std::size_t{32} << 20;
inline constexpr std::size_t listed_files_max = 100'000;
/// No file of a model is larger: bounds sums of sizes.
inline constexpr std::uint64_t file_bytes_max = std::uint64_t{1} << 50;

enum class hash_kind {
  sha256,  ///< of the bytes: files that the hub keeps in Git LFS
  git_blob ///< SHA-1 of "blob SIZE\0" and the bytes: all others
};

struct hub_file {
  std::string path; ///< is_file_path()
  std::uint64_t bytes = 0;
  hash_kind kind = hash_kind::git_blob;
  std::string hash; ///< in hexadecimal; empty: the hub gives none
};

struct hub_listing {
  std::string commit; ///< is_commit()
  std::vector<hub_file> files;

  /// @returns nullptr if there is no such file
  const hub_file* find(std::string_view path) const;
};

model::result<hub_listing>
parse_listing(std::string_view json, std::string_view where);

/// The files that describe a model: its configuration, tokenizer and chat
/// template, as far as there are such.
std::vector<const hub_file*> describing_files(const hub_listing& listing);

/// Files in GGUF, by name.
std::vector<std::string> gguf_files(const hub_listing& listing);

} // namespace shoal::hub
