// tests/support/scratch.hpp -- a folder for the disks of a simulated shoal, in
// memory where possible, so that a sync costs nothing.
//
// Its maker removes it. A process that was killed cannot: so each new process
// removes folders whose owners are gone. A lock on the folder, which ends with
// its process, shows that.
//
// Threads: one of a process at a time.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace shoal::test {

class scratch {
public:
  /// Makes /dev/shm/NAME-PID-NUMBER. @param in parent, instead of memory
  explicit scratch(const std::string& name, std::filesystem::path in = {}) {
    namespace fs = std::filesystem;
    if (in.empty())
      in = "/dev/shm";
    if (::access(in.c_str(), W_OK) != 0)
      in = fs::temp_directory_path();
    static std::set<std::string> swept;
    if (swept.insert(name).second)
      sweep(in, name + '-');
    static int number = 0;
    for (;;) {
      path_ = in
              / (name + '-' + std::to_string(::getpid()) + '-'
                 + std::to_string(number++));
      std::error_code error;
      if (!fs::create_directory(path_, error) && error)
        throw std::system_error(error, path_);
      lock_ = lock(path_); // not while another process checks whether it is in
                           // use
      if (lock_ >= 0)
        return;
    }
  }
  ~scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    ::close(lock_);
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

private:
  /// @returns a descriptor; -1: another process has it, or it is gone
  static int lock(const std::filesystem::path& folder) {
    const int fd =
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct stat now = {};
    if (fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd, &now) == 0
        && now.st_nlink > 0)
      return fd;
    if (fd >= 0)
      ::close(fd);
    return -1;
  }

  /// Whether the named process is another user's, or is alive.
  static bool lives(const std::string& rest) {
    pid_t pid = 0;
    const auto parsed =
      std::from_chars(rest.data(), rest.data() + rest.size(), pid);
    return parsed.ec != std::errc{} || pid <= 0 || ::kill(pid, 0) == 0
           || errno == EPERM;
  }

  static void sweep(const std::filesystem::path& in, const std::string& begin) {
    namespace fs = std::filesystem;
    std::error_code none;
    std::vector<fs::path> found;
    for (fs::directory_iterator at(in, none), end; !none && at != end;
         at.increment(none))
      if (const std::string file = at->path().filename();
          file.starts_with(begin) && !lives(file.substr(begin.size())))
        found.push_back(at->path());
    for (const fs::path& folder : found)
      if (const int fd = lock(folder); fd >= 0) {
        fs::remove_all(folder, none);
        ::close(fd);
      }
  }

  std::filesystem::path path_;
  int lock_ = -1;
};

} // namespace shoal::test
