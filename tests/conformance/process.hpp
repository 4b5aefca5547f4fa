// tests/conformance/process.hpp -- another process of this program.
//
// It is started with an environment variable that selects its role, and talks
// to the test over a socket. It is killed at a moment that the exchange itself
// defines, never after a time.
#pragma once

#include "runtime/host/child_process.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace shoal::transport::conformance {

/// The child's end of the socket.
inline constexpr int child_socket = 3;

inline void write_text(int fd, const std::string& text) {
  auto bytes = static_cast<std::uint32_t>(text.size());
  BOOST_REQUIRE(::write(fd, &bytes, sizeof bytes) == sizeof bytes);
  BOOST_REQUIRE(::write(fd, text.data(), text.size())
                == static_cast<ssize_t>(text.size()));
}

/// Empty at the end of the stream.
inline std::string read_text(int fd) {
  std::uint32_t bytes = 0;
  if (::recv(fd, &bytes, sizeof bytes, MSG_WAITALL) != sizeof bytes)
    return {};
  std::string text(bytes, '\0');
  if (::recv(fd, text.data(), bytes, MSG_WAITALL)
      != static_cast<ssize_t>(bytes))
    return {};
  return text;
}

class child_process {
public:
  child_process(const char* variable, const char* what) {
    int ends[2];
    BOOST_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)
                  == 0);
    setenv(variable, what, 1);
    process_ = runtime::child_process::fork([&] {
      dup2(ends[1], child_socket);
      execl("/proc/self/exe", "conformance_test", nullptr);
      return 127;
    });
    unsetenv(variable);
    ::close(ends[1]);
    socket_ = ends[0];
  }
  ~child_process() {
    process_.kill();
    ::close(socket_);
  }
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  int socket() const { return socket_; }
  void kill() { process_.kill(); }
  void stop() { process_.pause(); }
  void go_on() { process_.resume(); }

private:
  runtime::child_process process_;
  int socket_ = -1;
};

} // namespace shoal::transport::conformance
