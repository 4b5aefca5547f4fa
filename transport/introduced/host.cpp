// transport/introduced/host.cpp -- /proc, random numbers, pidfds.

#include "transport/introduced/host.hpp"

#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

namespace shoal::transport::introduced {

host_id this_host() {
  host_id host;
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  if (!std::getline(in, host.boot_id) || host.boot_id.empty()
      || host.boot_id.size() > boot_id_bytes_max)
    throw std::system_error(ENOENT, std::generic_category(),
                            "cannot read /proc/sys/kernel/random/boot_id");
  auto inode = [](const char* path) {
    struct stat info {};
    if (stat(path, &info) != 0)
      throw std::system_error(errno, std::generic_category(),
                              std::string("cannot read ") + path);
    return info.st_ino;
  };
  host.pid_namespace = inode("/proc/self/ns/pid");
  host.net_namespace = inode("/proc/self/ns/net");
  host.uid = geteuid();
  return host;
}

std::uint64_t random_token() {
  std::uint64_t value = 0;
  while (value == 0)
    if (getrandom(&value, sizeof value, 0) != sizeof value && errno != EINTR)
      throw std::system_error(errno, std::generic_category(), "getrandom");
  return value;
}

int open_pidfd(std::uint32_t pid) noexcept {
  return static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
}

} // namespace shoal::transport::introduced
