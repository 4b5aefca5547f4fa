// runtime/files/file_io.hpp -- whole files, read and durably replaced.
//
// Errors: a failure names the path and the system's reason.
#pragma once

#include "runtime/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace shoal::model {

/// Reads a regular file of at most `bytes_max` bytes.
result<std::string>
read_file(const std::filesystem::path& path, std::uint64_t bytes_max);

/// Writes a file under a temporary name beside its own. commit() syncs it and
/// gives it its own name; without commit() it vanishes.
class atomic_file {
public:
  explicit atomic_file(std::filesystem::path path);
  ~atomic_file();
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;

  status open();
  status write(std::span<const std::byte> bytes);
  status commit();

private:
  failure fault(const char* what) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// Replaces a file by `text`: temporary name, sync, rename.
status write_file(const std::filesystem::path& path, std::string_view text);

/// Makes the names in a directory survive a crash.
status sync_directory(const std::filesystem::path& directory);

} // namespace shoal::model
