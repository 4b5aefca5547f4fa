// apps/transfer/tokenizer_files.hpp -- a tokenizer trained by a run, as the
// files of a model's folder.
//
// Kept in memory, so that a process that is killed leaves nothing behind.
#pragma once

#include "runtime/files/file_io.hpp"

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace shoal::apps {

struct tokenizer_files {
  std::string tokenizer; ///< tokenizer.json
  std::string config;    ///< tokenizer_config.json

  /// Names and texts, as views of this object.
  std::array<std::pair<const char*, std::string_view>, 2> named() const {
    return {{{"tokenizer.json", tokenizer}, {"tokenizer_config.json", config}}};
  }

  model::status write_to(const std::filesystem::path& folder) const {
    for (const auto& [name, text] : named())
      if (auto written = model::write_file(folder / name, text); !written)
        return written;
    return model::done{};
  }
};

} // namespace shoal::apps
