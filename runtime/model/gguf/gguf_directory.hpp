// runtime/model/gguf/gguf_directory.hpp -- a GGUF file as a Hugging Face directory.
//
//   config.json, generation_config.json   of the file's keys
//   model.safetensors                     its tensors
//   tokenizer.json, tokenizer_config.json those beside the file; else of its keys
//   chat_template.jinja                   the one beside the file, if there is one
//
// Precision: F32, F16 and BF16 stay as they are; quantised values become BF16.
// Threads:   blocking. Cost: the directory has up to four times the file's bytes.
// Errors:    a failure names the file, and the key or the tensor.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/watch.hpp"
#include "runtime/model/config/config.hpp"

#include <filesystem>
#include <string>

namespace shoal::model::gguf {

/// Whether a path is to be read as a GGUF file: by its name.
bool is_file(const std::filesystem::path& path);

/// The model's shape, by the keys of a file.
result<model_config> load_config(const std::filesystem::path& file);

struct made_directory {
  std::string no_text; ///< why there is no tokenizer; empty: there is one
};

/// Writes the files into a directory, which is there.
result<made_directory>
write_directory(const std::filesystem::path& file,
                const std::filesystem::path& into, const watch& told = {});

} // namespace shoal::model::gguf
