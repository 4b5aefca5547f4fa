// runtime/node/file.hpp -- small files that survive a crash; descriptors.
//
// Threads: any. Errors: std::error_code of the system.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

namespace shoal::runtime {

/// An open file, closed at the end.
class unique_fd {
public:
  unique_fd() = default;
  explicit unique_fd(int fd) : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(other.release()) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~unique_fd() { reset(); }

  explicit operator bool() const noexcept { return fd_ >= 0; }
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset(int fd = -1) noexcept {
    if (fd_ >= 0)
      ::close(fd_);
    fd_ = fd;
  }

private:
  int fd_ = -1;
};

/// Makes a directory and those above it; what is new is mode 0700. Throws
/// node_error.
void make_private_dir(const std::filesystem::path& folder);

/// Writes a file that must not exist, mode 0600, and syncs it.
std::error_code write_new_file(const std::filesystem::path& file,
                               std::span<const std::byte> bytes);

/// Replaces a file in one step that a crash cannot tear: written beside it,
/// synced, renamed, and the directory synced.
std::error_code replace_file(const std::filesystem::path& file,
                             std::span<const std::byte> bytes);

/// Reads a whole file of at most `bytes_max`.
std::error_code read_file(const std::filesystem::path& file,
                          std::size_t bytes_max, std::vector<std::byte>& out);

/// Syncs the names in a directory.
std::error_code sync_dir(const std::filesystem::path& folder);

} // namespace shoal::runtime
