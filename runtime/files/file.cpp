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

draft_file::draft_file(fs::path place, mode_t mode)
  : place_(std::move(place)), draft_(place_), mode_(mode) {
  draft_ += ".new";
}

draft_file::~draft_file() {
  if (fd_)
    ::unlink(draft_.c_str());
}

std::error_code draft_file::open() {
  std::error_code error;
  fd_ = posix::open_regular(draft_, O_WRONLY | O_CREAT | O_TRUNC, error, mode_);
  return error;
}

std::error_code draft_file::write(std::span<const std::byte> bytes) {
  return posix::write_all(fd_.get(), bytes);
}

std::error_code draft_file::commit() {
  if (::fsync(fd_.get()) != 0 || ::rename(draft_.c_str(), place_.c_str()) != 0)
    return last_error();
  fd_.close();
  return posix::sync_folder(place_.parent_path());
}

std::error_code
write_new_file(const fs::path& file, std::span<const std::byte> bytes) {
  std::error_code error;
  const unique_fd fd =
    posix::open_regular(file, O_WRONLY | O_CREAT | O_EXCL, error);
  if (!error)
    error = posix::write_all(fd.get(), bytes);
  if (!error && ::fsync(fd.get()) != 0)
    error = last_error();
  return error;
}

std::error_code replace_file(const fs::path& file,
                             std::span<const std::byte> bytes, mode_t mode) {
  draft_file draft(file, mode);
  if (const auto error = draft.open())
    return error;
  if (const auto error = draft.write(bytes))
    return error;
  return draft.commit();
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

std::error_code make_folder_below(const std::filesystem::path& root,
                                  const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(root, error))
    return error ? error
                 : std::make_error_code(std::errc::no_such_file_or_directory);
  std::filesystem::create_directories(folder, error);
  return error;
}

std::vector<std::filesystem::path>
paths_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error))
    out.push_back(at->path());
  return out;
}

} // namespace shoal::runtime
