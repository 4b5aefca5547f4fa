// runtime/node/frames.cpp -- length-prefixed messages on a stream socket.
#include "runtime/node/frames.hpp"

#include "runtime/node.hpp"       // node_error
#include "runtime/wire/codec.hpp" // message_bytes_max

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace shoal::runtime {

namespace fs = std::filesystem;

static constexpr std::size_t length_bytes = 4;
static constexpr std::size_t read_bytes = 64 * 1024;
static constexpr int backlog = 64;

bool frame_reader::fill(int fd) {
  std::size_t size = buffer_.size();
  buffer_.resize(size + read_bytes);
  ssize_t n;
  do
    n = ::recv(fd, buffer_.data() + size, read_bytes, 0);
  while (n < 0 && errno == EINTR);
  buffer_.resize(size + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

bool frame_reader::next(std::vector<std::byte>& message) {
  if (broken_ || buffer_.size() < length_bytes)
    return false;
  std::size_t size = 0;
  for (std::size_t i = length_bytes; i-- > 0;)
    size = size << 8 | std::to_integer<std::size_t>(buffer_[i]);
  if (size > codec::message_bytes_max) {
    broken_ = true;
    return false;
  }
  if (buffer_.size() < length_bytes + size)
    return false;
  auto first = buffer_.begin() + length_bytes;
  auto last = first + static_cast<std::ptrdiff_t>(size);
  message.assign(first, last);
  buffer_.erase(buffer_.begin(), last);
  return true;
}

std::vector<std::byte> frame(std::span<const std::byte> message) {
  std::vector<std::byte> out;
  out.reserve(length_bytes + message.size());
  for (std::size_t i = 0; i < length_bytes; ++i)
    out.push_back(static_cast<std::byte>(message.size() >> (8 * i)));
  out.insert(out.end(), message.begin(), message.end());
  return out;
}

/// Socket addresses hold 107 characters; a path through the directory's
/// descriptor is always short enough.
static sockaddr_un address_of(const fs::path& socket, const unique_fd& folder) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::string path = "/proc/self/fd/" + std::to_string(folder.get()) + "/"
                     + socket.filename().string();
  std::strncpy(at.sun_path, path.c_str(), sizeof at.sun_path - 1);
  return at;
}

unique_fd listen_unix(const fs::path& socket) {
  unique_fd folder(
    ::open(socket.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  unique_fd fd(
    ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un at = address_of(socket, folder);
  ::unlink(socket.c_str()); // the data directory's lock is ours
  mode_t before = ::umask(0177);
  bool good =
    folder && fd
    && ::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
  int why = errno;
  ::umask(before);
  if (!good || ::listen(fd.get(), backlog) != 0)
    throw node_error("cannot listen on " + socket.string() + ": "
                     + std::strerror(good ? errno : why));
  return fd;
}

unique_fd connect_unix(const fs::path& socket) {
  unique_fd folder(
    ::open(socket.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  unique_fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!folder || !fd)
    return {};
  sockaddr_un at = address_of(socket, folder);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0)
    return {};
  return fd;
}

} // namespace shoal::runtime
