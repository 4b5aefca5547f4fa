// transport/shm/segment.cpp -- memfd, seals, pipes, /proc/<pid>/fd.

#include "transport/shm/segment.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace shoal::transport::shm {

namespace {

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

std::string path_of(std::uint32_t pid, std::uint64_t descriptor) {
  return "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor);
}

/// Opens a path if it leads to memory or a pipe, as `type` says; -1 if not.
/// Checks before it opens: opening a device or a file of some servers may block
/// or have effects.
int open_checked(const std::string& path, mode_t type, int flags) noexcept {
  const int seen = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (seen < 0)
    return -1;
  struct stat info {};
  struct statfs where {};
  int fd = -1;
  if (fstat(seen, &info) == 0 && (info.st_mode & S_IFMT) == type
      && (type != S_IFREG
          || (fstatfs(seen, &where) == 0 && where.f_type == TMPFS_MAGIC)))
    fd = ::open(path_of(static_cast<std::uint32_t>(getpid()),
                        static_cast<std::uint64_t>(seen))
                  .c_str(),
                flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  ::close(seen);
  return fd;
}

/// A descriptor that closes itself.
struct file {
  int fd;
  ~file() {
    if (fd >= 0)
      ::close(fd);
  }
};

} // namespace

segment::segment(std::size_t bytes, pages which) {
  file f{memfd_create("shoal", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (f.fd < 0 || ftruncate(f.fd, static_cast<off_t>(bytes)) != 0)
    throw std::system_error(errno, std::generic_category(), "shared memory");
  void* mapped =
    mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, 0);
  if (mapped == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "shared memory");
  base_ = static_cast<std::byte*>(mapped);
  size_ = bytes;
  // The kernel may not know the first seal; the last must not fail.
  if (which == pages::stay)
    fcntl(f.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
  else
    fchmod(f.fd, S_IRUSR);
  fcntl(f.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  fd_ = std::exchange(f.fd, -1);
}

void segment::release(std::span<std::byte> whole_pages) const noexcept {
  // A kernel that cannot do this keeps the pages until they are used again.
  madvise(whole_pages.data(), whole_pages.size(), MADV_REMOVE);
}

segment::~segment() {
  if (base_ != nullptr)
    munmap(base_, size_);
  if (fd_ >= 0)
    ::close(fd_);
}

segment::segment(segment&& other) noexcept
  : fd_(std::exchange(other.fd_, -1)),
    base_(std::exchange(other.base_, nullptr)),
    size_(std::exchange(other.size_, 0)) {
}

segment& segment::operator=(segment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  return *this;
}

view::~view() {
  if (base_ != nullptr)
    munmap(const_cast<std::byte*>(base_), size_);
}

view::view(view&& other) noexcept
  : base_(std::exchange(other.base_, nullptr)),
    size_(std::exchange(other.size_, 0)) {
}

view& view::operator=(view&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  return *this;
}

std::optional<view>
view::open(std::uint32_t pid, std::uint64_t descriptor, std::size_t bytes) {
  const file f{open_checked(path_of(pid, descriptor), S_IFREG, O_RDONLY)};
  if (f.fd < 0)
    return {};
  const int seals = fcntl(f.fd, F_GET_SEALS);
  struct stat info {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(f.fd, &info) != 0
      || info.st_size < static_cast<off_t>(bytes))
    return {};
  void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, f.fd, 0);
  if (mapped == MAP_FAILED)
    return {};
  view out;
  out.base_ = static_cast<const std::byte*>(mapped);
  out.size_ = bytes;
  return out;
}

bell::bell() {
  if (pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe");
}

bell::~bell() {
  ::close(ends_[0]);
  ::close(ends_[1]);
}

void bell::silence() noexcept {
  // Bytes that remain keep it readable.
  std::array<char, 4096> rung;
  [[maybe_unused]] const auto n = ::read(ends_[0], rung.data(), rung.size());
}

int open_bell(std::uint32_t pid, std::uint64_t descriptor) noexcept {
  return open_checked(path_of(pid, descriptor), S_IFIFO, O_WRONLY);
}

void ring_bell(int fd) noexcept {
  // EAGAIN: it has been rung often enough. EPIPE: its owner is gone; the thread
  // has SIGPIPE blocked.
  [[maybe_unused]] const auto n = ::write(fd, "", 1);
}

} // namespace shoal::transport::shm
