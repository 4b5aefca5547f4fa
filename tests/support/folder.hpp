// tests/support/folder.hpp -- a folder that is removed with its test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace shoal::test {

struct folder {
  folder() {
    auto name =
      (std::filesystem::temp_directory_path() / "shoal-XXXXXX").string();
    if (!::mkdtemp(name.data()))
      throw std::runtime_error("no temporary folder");
    path = name;
  }
  ~folder() {
    std::error_code none;
    std::filesystem::remove_all(path, none);
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;

  std::filesystem::path path;
};

} // namespace shoal::test
