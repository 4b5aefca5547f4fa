// runtime/hub/hub_name.hpp -- names of models on the Hugging Face hub.
//
//   ORG/NAME                 the model in safetensors, of the branch main
//   ORG/NAME@REVISION        the same of a branch, a tag or a commit
//   ORG/NAME[@REVISION]:FILE.gguf   one file in GGUF
//
// A name becomes part of paths and of URLs. So it is checked here, once, and
// code behind it relies on that: no "..", no control characters, no empty part.
//
// Threads: pure functions. Errors: a failure says what is expected.
// Source:  huggingface_hub, utils/_validators.py, for ORG/NAME;
//          git-check-ref-format(1) for revisions.
#pragma once

#include "runtime/core/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace shoal::hub {

/// Of ORG and of NAME, as the hub has it.
inline constexpr std::size_t name_part_bytes_max = 96;
/// A file system allows 255 bytes for one part of a path.
inline constexpr std::size_t path_part_bytes_max = 255;
inline constexpr std::size_t path_bytes_max = 1024;

inline constexpr char main_revision[] = "main";

struct hub_name {
  std::string repository; ///< "ORG/NAME"
  std::string revision = main_revision;
  std::string file; ///< in GGUF; empty: the model in safetensors
};

model::result<hub_name> parse_name(std::string_view text);

/// Whether a file of a repository may have this path: relative, in UTF-8,
/// without "." and "..", control characters and backslashes.
[[nodiscard]] bool is_file_path(std::string_view path);

/// 40 hexadecimal digits in lower case: the id of a commit.
[[nodiscard]] bool is_commit(std::string_view revision);

/// Whether all are hexadecimal digits in lower case.
[[nodiscard]] bool is_hex(std::string_view text);

} // namespace shoal::hub
