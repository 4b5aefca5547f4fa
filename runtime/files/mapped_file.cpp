// runtime/files/mapped_file.cpp -- maps files and explains lost bytes.
//
// The table of mapped files has a fixed size and is made of atomics, because a
// signal handler reads it: an entry is filled before its address is set, and
// emptied after its address is cleared.
#include "runtime/files/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace shoal::model {

namespace {

struct entry {
  std::atomic<bool> taken{false};
  std::atomic<std::uintptr_t> first{0}; ///< 0: nothing
  std::atomic<std::size_t> size{0};
  std::atomic<const char*> name{nullptr};
};
std::array<entry, explained_files_max> table;

std::size_t
enter(const char* name, const std::byte* data, std::size_t size) noexcept {
  for (std::size_t i = 0; data != nullptr && i != table.size(); ++i) {
    if (table[i].taken.exchange(true))
      continue;
    table[i].name = name;
    table[i].size = size;
    table[i].first = reinterpret_cast<std::uintptr_t>(data);
    return i;
  }
  return table.size();
}

void leave(std::size_t slot) noexcept {
  if (slot == table.size())
    return;
  table[slot].first = 0;
  table[slot].taken = false;
}

/// Uses only functions that are allowed in a signal handler.
void say(const char* text) noexcept {
  [[maybe_unused]] const auto written =
    ::write(STDERR_FILENO, text, std::strlen(text));
}

void on_bus_error(int, siginfo_t* info, void*) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const entry& e : table) {
    const std::uintptr_t first = e.first;
    if (first == 0 || at < first || at - first >= e.size)
      continue;
    say("shoal: ");
    say(e.name);
    say(": the file was truncated, or cannot be read, while it was in use\n");
    ::_exit(1);
  }
  std::signal(SIGBUS, SIG_DFL); // the next one ends the process
}

} // namespace

mapped_file::mapped_file(std::string name, const std::byte* data,
                         std::size_t size)
  : name_(std::move(name)), data_(data), size_(size),
    slot_(enter(name_.c_str(), data, size)) {
}

mapped_file::~mapped_file() {
  leave(slot_);
  if (data_ != nullptr)
    ::munmap(const_cast<std::byte*>(data_), size_);
}

result<std::shared_ptr<const mapped_file>>
mapped_file::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return failure{path.string() + ": cannot open: " + std::strerror(errno)};
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return failure{path.string() + ": is not a regular file"};
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* at =
    size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int why = errno;
  ::close(fd);
  if (at == MAP_FAILED)
    return failure{path.string() + ": cannot map: " + std::strerror(why)};
  return std::shared_ptr<const mapped_file>(
    new mapped_file(path.string(), static_cast<const std::byte*>(at), size));
}

void explain_truncation() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

} // namespace shoal::model
