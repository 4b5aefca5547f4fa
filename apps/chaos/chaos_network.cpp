// apps/chaos/chaos_network.cpp -- uses unshare, setns and the program `ip`.
#include "apps/chaos/chaos_network.hpp"

#include "runtime/host/child_process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace shoal::apps {

using unique_fd = runtime::posix::descriptor;

namespace {

[[noreturn]] void throw_system_error(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

void write_file(const char* path, const std::string& text) {
  const unique_fd fd(::open(path, O_WRONLY | O_CLOEXEC));
  if (!fd
      || runtime::posix::write_all(fd.get(), std::as_bytes(std::span{text})))
    throw_system_error(path);
}

/// Moves this thread into a network namespace of its own.
void own_namespace() {
  if (::unshare(CLONE_NEWNET) == 0)
    return;
  const std::string user = std::to_string(::geteuid());
  const std::string group = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
    throw_system_error("no network namespaces for this user");
  write_file("/proc/self/setgroups", "deny"); // otherwise gid_map is refused
  write_file("/proc/self/uid_map", "0 " + user + " 1");
  write_file("/proc/self/gid_map", "0 " + group + " 1");
}

unique_fd this_namespace() {
  unique_fd fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!fd)
    throw_system_error("/proc/thread-self/ns/net");
  return fd;
}

std::string all_of(int fd) {
  std::string text;
  std::array<char, 512> piece{};
  for (ssize_t n; (n = ::read(fd, piece.data(), piece.size())) != 0;)
    if (n > 0)
      text.append(piece.data(), std::size_t(n));
    else if (errno != EINTR)
      break;
  while (text.ends_with('\n'))
    text.pop_back();
  return text;
}

/// Runs `ip` with these arguments in a namespace; an error names them.
void ip(const unique_fd& where, const std::vector<std::string>& words) {
  std::vector<char*> arguments{const_cast<char*>("ip")};
  std::string line = "ip";
  for (const std::string& w : words) {
    arguments.push_back(const_cast<char*>(w.c_str()));
    line += " " + w;
  }
  arguments.push_back(nullptr);
  std::array<int, 2> said{};
  if (::pipe2(said.data(), O_CLOEXEC) != 0)
    throw_system_error("pipe");
  const unique_fd from(said[0]);
  unique_fd to(said[1]);
  auto child = runtime::child_process::fork([&] {
    ::setns(where.get(), CLONE_NEWNET);
    ::dup2(to.get(), STDERR_FILENO);
    ::execvp("ip", arguments.data());
    ::execv("/usr/sbin/ip", arguments.data()); // not in all users' PATH
    ::execv("/sbin/ip", arguments.data());
    return 127;
  });
  to.reset();
  const std::string error = all_of(from.get());
  const int status = child.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    throw std::runtime_error("no program `ip` (package iproute2)");
  if (status != 0)
    throw std::runtime_error(line + ": " + error);
}

} // namespace

std::string chaos_network::why_not() {
  std::array<int, 2> said{};
  if (::pipe2(said.data(), O_CLOEXEC) != 0)
    return "no pipes";
  const unique_fd from(said[0]);
  unique_fd to(said[1]);
  auto child = runtime::child_process::fork([&] {
    try {
      chaos_network probe(2);
      probe.cut(0, 1);
    } catch (const std::exception& e) {
      const std::string why = e.what();
      static_cast<void>(
        runtime::posix::write_all(to.get(), std::as_bytes(std::span{why})));
    }
    return 0;
  });
  to.reset();
  std::string why = all_of(from.get());
  child.wait();
  return why;
}

chaos_network::chaos_network(std::size_t hosts) {
  if (hosts > hosts_max)
    throw std::runtime_error("at most " + std::to_string(hosts_max) + " hosts");
  own_namespace();
  home_ = this_namespace();
  ip(home_, {"link", "add", "br0", "type", "bridge"});
  ip(home_, {"link", "set", "br0", "up"});
  for (std::size_t i = 0; i < hosts; ++i) {
    if (::unshare(CLONE_NEWNET) != 0)
      throw_system_error("network namespace of a host");
    hosts_.push_back(this_namespace());
    if (::setns(home_.get(), CLONE_NEWNET) != 0)
      throw_system_error("back to the bridge");
    const std::string wire = "v" + std::to_string(i + 1);
    const std::string there = "/proc/" + std::to_string(::getpid()) + "/fd/"
                              + std::to_string(hosts_.back().get());
    ip(home_, {"link", "add", wire, "type", "veth", "peer", "name", "eth0",
               "netns", there});
    ip(home_, {"link", "set", wire, "master", "br0", "up"});
    const unique_fd& host = hosts_.back();
    ip(host, {"addr", "add", address(i) + "/24", "dev", "eth0"});
    ip(host, {"link", "set", "eth0", "up"});
    ip(host, {"link", "set", "lo", "up"});
  }
}

std::string chaos_network::address(std::size_t host) {
  return "10.83.0." + std::to_string(host + 1);
}

/// Each end discards packets to the other.
void chaos_network::route(std::size_t a, std::size_t b, const char* what) {
  ip(hosts_[a], {"route", what, "blackhole", address(b) + "/32"});
  ip(hosts_[b], {"route", what, "blackhole", address(a) + "/32"});
}

} // namespace shoal::apps
