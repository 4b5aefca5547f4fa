// runtime/files/file.cpp -- small files that survive a crash.
#include "runtime/files/file.hpp"

#include "runtime/core/setup_error.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace shoal::runtime {

namespace fs = std::filesystem;

using posix::last_error;

void make_private_dir(const fs::path& folder) {
  if (folder.empty() || fs::is_directory(folder))
    return;
  make_private_dir(folder.parent_path());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw setup_error("cannot make directory " + folder.string() + ": "
                      + std::strerror(errno));
}

static std::error_code
write_file(const fs::path& file, int flags, std::span<const std::byte> bytes) {
  std::error_code error;
  const unique_fd fd =
    posix::open_regular(file, O_WRONLY | O_CREAT | flags, error);
  if (error)
    return error;
  if (error = posix::write_all(fd.get(), bytes); error)
    return error;
  return ::fsync(fd.get()) == 0 ? std::error_code{} : last_error();
}

std::error_code
write_new_file(const fs::path& file, std::span<const std::byte> bytes) {
  return write_file(file, O_EXCL, bytes);
}

std::error_code
replace_file(const fs::path& file, std::span<const std::byte> bytes) {
  fs::path draft = file;
  draft += ".new";
  if (auto error = write_file(draft, O_TRUNC, bytes))
    return error;
  if (::rename(draft.c_str(), file.c_str()) != 0)
    return last_error();
  return posix::sync_folder(file.parent_path());
}

std::error_code read_file(const fs::path& file, std::size_t bytes_max,
                          std::vector<std::byte>& out) {
  std::error_code error;
  const unique_fd fd = posix::open_regular(file, O_RDONLY, error);
  struct stat info {};
  if (error)
    return error;
  if (::fstat(fd.get(), &info) != 0)
    return last_error();
  if (static_cast<std::uint64_t>(info.st_size) > bytes_max)
    return std::make_error_code(std::errc::file_too_large);
  out.resize(static_cast<std::size_t>(info.st_size));
  std::size_t done = 0;
  while (done < out.size()) {
    ssize_t n = ::read(fd.get(), out.data() + done, out.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return last_error();
    if (n == 0)
      break;
    done += static_cast<std::size_t>(n);
  }
  out.resize(done);
  return {};
}

} // namespace shoal::runtime
