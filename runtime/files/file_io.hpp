// runtime/files/file_io.hpp -- whole files, read and durably replaced.
//
// The same as file.hpp, but failures are text that can be shown to a user.
//
// Errors: a failure names the path and the system's reason.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/files/file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace shoal::model {

/// Reads a regular file of at most `bytes_max` bytes.
result<std::string>
read_file(const std::filesystem::path& path, std::uint64_t bytes_max);

/// Of a folder: "has NAME, but as a link to TARGET, which does not exist", NAME being
/// the last part of the path; empty: it is no such link.
std::string dead_link(const std::filesystem::path& path);

/// The failure that `error` is for this file: "PATH: ACTION: reason".
failure file_failure(const std::filesystem::path& path, std::string_view action,
                     std::error_code error);

/// Writes a file through a runtime::draft_file, with the permissions that the
/// umask leaves. A failure names the file.
class file_writer {
public:
  explicit file_writer(std::filesystem::path path);

  status open();
  status write(std::span<const std::byte> bytes);
  status commit();

private:
  std::filesystem::path path_;
  runtime::draft_file draft_;
};

/// Replaces a file by `text`.
status write_file(const std::filesystem::path& path, std::string_view text);

/// Makes the names in a directory survive a crash.
status sync_directory(const std::filesystem::path& directory);

} // namespace shoal::model
