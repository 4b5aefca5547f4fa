// runtime/files/file.hpp -- small files that survive a crash.
//
// Threads: any. Errors: std::error_code of the system.
#pragma once

#include "runtime/files/posix.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <system_error>
#include <vector>

namespace shoal::runtime {

using unique_fd = posix::descriptor;

/// Makes a directory and its parents; new ones get mode 0700. Throws
/// setup_error.
void make_private_dir(const std::filesystem::path& folder);

/// A file that takes its place in one step that a crash cannot tear: it is
/// written beside it as PLACE.new; commit() syncs it, renames it and syncs the
/// folder. Without commit() it goes away.
///
/// Threads: one. One draft of a place at a time, or the last one wins.
class draft_file {
public:
  /// @param mode of the file, before the process's umask
  explicit draft_file(std::filesystem::path place, mode_t mode = 0600);
  ~draft_file();
  draft_file(const draft_file&) = delete;
  draft_file& operator=(const draft_file&) = delete;

  std::error_code open();
  std::error_code write(std::span<const std::byte> bytes);
  std::error_code commit();

private:
  std::filesystem::path place_;
  std::filesystem::path draft_;
  mode_t mode_;
  unique_fd fd_;
};

/// Writes a file that must not exist, mode 0600, and syncs it.
std::error_code write_new_file(const std::filesystem::path& file,
                               std::span<const std::byte> bytes);

/// Replaces a file by way of a draft_file.
std::error_code
replace_file(const std::filesystem::path& file,
             std::span<const std::byte> bytes, mode_t mode = 0600);

/// Makes a folder below `root`, but not `root`: a data directory that its user has
/// moved must not come back empty.
std::error_code make_folder_below(const std::filesystem::path& root,
                                  const std::filesystem::path& folder);

/// What a folder has; none, or some, where it cannot be read.
std::vector<std::filesystem::path>
paths_in(const std::filesystem::path& folder);

/// Reads a whole file of at most `bytes_max`.
std::error_code read_file(const std::filesystem::path& file,
                          std::size_t bytes_max, std::vector<std::byte>& out);

} // namespace shoal::runtime
