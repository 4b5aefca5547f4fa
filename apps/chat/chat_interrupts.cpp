// apps/chat/chat_interrupts.cpp -- a pipe that signal handlers write to.
#include "apps/chat/chat_interrupts.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <system_error>

namespace shoal::apps {
namespace {

std::atomic<int> pipe_end{-1};
std::atomic<bool> is_to_end{false};
static_assert(std::atomic<int>::is_always_lock_free); // for a signal handler

void note(int which) {
  const int error = errno;
  if (which != SIGINT)
    is_to_end = true;
  const char byte = 0;
  [[maybe_unused]] const auto written = ::write(pipe_end, &byte, 1);
  errno = error;
}

constexpr std::array all{SIGINT, SIGTERM, SIGHUP};

} // namespace

chat_interrupts::chat_interrupts() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe");
  read_.reset(fds[0]);
  write_.reset(fds[1]);
  pipe_end = fds[1];
  is_to_end = false;
  std::signal(SIGPIPE, SIG_IGN);
  for (const int which : all) {
    struct sigaction old {};
    ::sigaction(which, nullptr, &old);
    if (old.sa_handler == SIG_IGN) // nohup
      continue;
    struct sigaction mine {};
    mine.sa_handler = note; // no SA_RESTART: what waits is to wake up
    ::sigaction(which, &mine, nullptr);
  }
}

chat_interrupts::~chat_interrupts() {
  for (const int which : all) {
    struct sigaction now {};
    ::sigaction(which, nullptr, &now);
    if (now.sa_handler == note)
      std::signal(which, SIG_DFL);
  }
  pipe_end = -1;
}

bool chat_interrupts::ends() const noexcept {
  return is_to_end;
}

bool chat_interrupts::taken() {
  std::array<char, 64> bytes{};
  bool any = false;
  while (!is_to_end && ::read(read_.get(), bytes.data(), bytes.size()) > 0)
    any = true;
  return any || is_to_end;
}

} // namespace shoal::apps
