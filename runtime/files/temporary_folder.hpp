// runtime/files/temporary_folder.hpp -- the folder for temporary files.
#pragma once

#include "runtime/core/setup_error.hpp"

#include <cstdlib>
#include <filesystem>

namespace shoal::runtime {

/// TMPDIR, or /tmp. Throws setup_error that names the variable if it is no folder.
inline std::filesystem::path temporary_folder() {
  std::error_code error;
  auto out = std::filesystem::temp_directory_path(error);
  if (!error)
    return out;
  const char* named = std::getenv("TMPDIR");
  throw setup_error(
    named == nullptr
      ? "there is no folder for temporary files: set TMPDIR to one"
      : "TMPDIR is " + std::string(named)
          + ", which is not a folder: set it to one for temporary files");
}

} // namespace shoal::runtime
