// runtime/files/posix.hpp -- system calls on files, with error codes.
//
// A node opens its own files by open_regular() or open_text(): whatever lies in
// their place, the node never blocks on it.
//
// Threads: any.
#pragma once

#include "runtime/core/errc.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <system_error>
#include <utility>

namespace shoal::runtime::posix {

inline std::error_code last_error() noexcept {
  return {errno, std::generic_category()};
}

/// Owns a file descriptor.
class descriptor {
public:
  descriptor() = default;
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  ~descriptor() { close(); }
  descriptor(descriptor&& other) noexcept : fd_(other.release()) {}
  descriptor& operator=(descriptor&& other) noexcept {
    reset(other.release());
    return *this;
  }

  explicit operator bool() const noexcept { return fd_ >= 0; }
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset(int fd = -1) noexcept {
    close();
    fd_ = fd;
  }
  /// @returns the result of the system's close()
  int close() noexcept {
    const int fd = std::exchange(fd_, -1);
    return fd >= 0 ? ::close(fd) : 0;
  }

private:
  int fd_ = -1;
};

/// Opens a file like open(2), but never blocks: for files that must be regular.
/// A FIFO would block its opener until another process opens it, too.
/// @param mode of a file that is created, before the process's umask
/// @returns none with `error` set: the system's error, or errc::not_regular
inline descriptor
open_regular(const std::filesystem::path& file, int flags,
             std::error_code& error, mode_t mode = 0600) noexcept {
  descriptor fd(
    ::open(file.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode));
  struct stat is {};
  if (!fd || ::fstat(fd.get(), &is) != 0) {
    error = last_error();
    // From a FIFO without reader, a socket, or a folder opened for writing.
    if (errno == ENXIO || errno == EISDIR)
      error = errc::not_regular;
    return {};
  }
  if (!S_ISREG(is.st_mode)) {
    error = errc::not_regular;
    return {};
  }
  error = {};
  return fd;
}

/// Which file it is, whatever its name.
struct file_id {
  dev_t device = 0;
  ino_t inode = 0; ///< 0: none

  static file_id of(const std::filesystem::path& file) {
    struct stat is {};
    return ::stat(file.c_str(), &is) == 0 ? file_id{is.st_dev, is.st_ino}
                                          : file_id{};
  }
  bool operator==(const file_id&) const = default;
  bool is_at(const std::filesystem::path& file) const {
    return inode != 0 && of(file) == *this;
  }
};

/// Opens a regular file as text. Anything else counts as a file that does not
/// exist.
inline std::ifstream open_text(const std::filesystem::path& file) {
  std::error_code none;
  std::ifstream in;
  if (std::filesystem::is_regular_file(file, none))
    in.open(file);
  else
    in.setstate(std::ios::failbit);
  return in;
}

inline std::error_code
write_all(int fd, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR)
      return last_error();
    if (written > 0)
      bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

/// Makes the names in a folder survive a crash. Empty: the current folder.
inline std::error_code
sync_folder(const std::filesystem::path& folder) noexcept {
  const descriptor fd(::open(folder.empty() ? "." : folder.c_str(),
                             O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd)
    return last_error();
  // Some file systems cannot sync a folder: EINVAL.
  return ::fsync(fd.get()) == 0 || errno == EINVAL ? std::error_code{}
                                                   : last_error();
}

} // namespace shoal::runtime::posix
