// runtime/files/file_io.cpp -- whole files, read and durably replaced.
#include "runtime/files/file_io.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace shoal::model {

namespace {

failure system_fault(const std::filesystem::path& path, const char* what) {
  return {path.string() + ": " + what + ": " + std::strerror(errno)};
}

} // namespace

result<std::string>
read_file(const std::filesystem::path& path, std::uint64_t bytes_max) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return system_fault(path, "cannot open");
  struct closer {
    int fd;
    ~closer() { ::close(fd); }
  } close_it{fd};
  struct stat info {};
  if (::fstat(fd, &info) != 0)
    return system_fault(path, "cannot read");
  if (!S_ISREG(info.st_mode))
    return failure{path.string() + ": is not a regular file"};
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return system_fault(path, "cannot read");
    if (got == 0)
      return text;
    if (text.size() + static_cast<std::size_t>(got) > bytes_max)
      return failure{path.string() + ": is longer than "
                     + std::to_string(bytes_max) + " bytes"};
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

atomic_file::atomic_file(std::filesystem::path path)
  : path_(std::move(path)),
    temporary_(path_.string() + ".part." + std::to_string(::getpid())) {
}

atomic_file::~atomic_file() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }
}

failure atomic_file::fault(const char* what) const {
  return system_fault(temporary_, what);
}

status atomic_file::open() {
  descriptor_ =
    ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0)
    return fault("cannot create");
  return done{};
}

status atomic_file::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return fault("cannot write");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return done{};
}

status atomic_file::commit() {
  if (::fsync(descriptor_) != 0)
    return fault("cannot sync");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    return fault("cannot rename");
  ::close(descriptor_);
  descriptor_ = -1;
  const auto parent = path_.parent_path();
  return sync_directory(parent.empty() ? "." : parent);
}

status write_file(const std::filesystem::path& path, std::string_view text) {
  atomic_file file(path);
  if (status opened = file.open(); !opened)
    return opened;
  if (status written = file.write(std::as_bytes(std::span(text))); !written)
    return written;
  return file.commit();
}

status sync_directory(const std::filesystem::path& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return system_fault(directory, "cannot open");
  const int rc = ::fsync(fd);
  const int why = errno;
  ::close(fd);
  errno = why;
  if (rc != 0 && why != EINVAL) // some file systems cannot sync a directory
    return system_fault(directory, "cannot sync");
  return done{};
}

} // namespace shoal::model
