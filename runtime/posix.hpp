// runtime/posix.hpp -- files as the system has them, with error codes.
//
// Threads: any.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
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
  /// @returns what the system's close() does
  int close() noexcept {
    const int fd = std::exchange(fd_, -1);
    return fd >= 0 ? ::close(fd) : 0;
  }

private:
  int fd_ = -1;
};

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

/// Makes the names in a folder survive a crash.
inline std::error_code
sync_folder(const std::filesystem::path& folder) noexcept {
  const descriptor fd(
    ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0)
    return last_error();
  return {};
}

} // namespace shoal::runtime::posix
