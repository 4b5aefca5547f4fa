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

/// Writes a file that must not exist, mode 0600, and syncs it.
std::error_code write_new_file(const std::filesystem::path& file,
                               std::span<const std::byte> bytes);

/// Replaces a file in one step that a crash cannot tear: writes a file beside
/// it, syncs it, renames it, and syncs the directory.
std::error_code replace_file(const std::filesystem::path& file,
                             std::span<const std::byte> bytes);

/// Reads a whole file of at most `bytes_max`.
std::error_code read_file(const std::filesystem::path& file,
                          std::size_t bytes_max, std::vector<std::byte>& out);

} // namespace shoal::runtime
