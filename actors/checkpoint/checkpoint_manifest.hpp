// actors/checkpoint/checkpoint_manifest.hpp -- the list of a checkpoint's
// files.
//
// A small JSON blob: the step, and name, size and digest of each file. It may
// come from another peer, so names are checked to be plain before they are
// used.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

inline constexpr std::size_t manifest_files_max = 20000;
inline constexpr std::size_t manifest_bytes_max = 8u << 20;

// Files of a model and of its optimizer: NAME.safetensors, or several with
// NAME.safetensors.index.json.
inline constexpr char model_files[] = "model";
inline constexpr char optimizer_files[] = "optimizer";
std::string single_name(const std::string& files);
std::string index_name(const std::string& files);

struct manifest_file {
  std::string name; ///< without folders
  core::blob_digest digest{};
  std::uint64_t bytes = 0;
};

struct manifest {
  std::uint64_t step = 0;
  std::vector<manifest_file> files;
  std::uint64_t total_bytes() const;
  /// @returns nullptr if there is no such file
  const manifest_file* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
};

/// Whether the model's weights are in it. Without them it may still hold the
/// files that a run from random weights copies to its model.
bool holds_weights(const manifest& m);

/// Whether a file may have this name: no folders, not hidden.
bool plain_name(const std::string& name);
/// Whether only the optimizer needs the file.
bool of_optimizer(const std::string& name);

/// Files that come with a model besides its weights: its tokenizer, and
/// settings for its use. Training does not change them.
inline constexpr const char* carried_names[] = {"tokenizer.json",
                                                "tokenizer_config.json",
                                                "tokenizer.model",
                                                "special_tokens_map.json",
                                                "added_tokens.json",
                                                "vocab.json",
                                                "merges.txt",
                                                "chat_template.jinja",
                                                "generation_config.json"};
bool carried_on(const std::string& name);
/// Whether a file is read with a model's text: those and config.json.
bool of_text(const std::string& name);
/// Whether a file also belongs to a model that was given another tokenizer.
bool without_tokenizer(const std::string& name);

std::string to_json(const manifest& m);
model::result<manifest> parse_manifest(std::string_view json);

} // namespace shoal::actors
