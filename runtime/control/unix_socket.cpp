// runtime/control/unix_socket.cpp -- binds, listens, connects.
#include "runtime/control/unix_socket.hpp"

#include "runtime/core/setup_error.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace shoal::runtime {

namespace fs = std::filesystem;

/// Connections that may wait to be accepted.
static constexpr int backlog = 64;

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
  ::unlink(socket.c_str()); // we hold the data directory's lock
  mode_t before = ::umask(0177);
  bool bound =
    folder && fd
    && ::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
  int why = errno;
  ::umask(before);
  if (!bound || ::listen(fd.get(), backlog) != 0)
    throw setup_error("cannot listen on " + socket.string() + ": "
                      + std::strerror(bound ? errno : why));
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
