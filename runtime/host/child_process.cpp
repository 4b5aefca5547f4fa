// runtime/host/child_process.cpp -- fork, signals and waitpid.
#include "runtime/host/child_process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

namespace shoal::runtime {

child_process::~child_process() {
  kill();
}

child_process& child_process::operator=(child_process&& other) noexcept {
  if (this != &other) {
    kill();
    pid_ = std::exchange(other.pid_, 0);
  }
  return *this;
}

pid_t child_process::fork_now() {
  const pid_t pid = ::fork();
  if (pid < 0)
    throw std::runtime_error(std::string("cannot start a process: ")
                             + std::strerror(errno));
  return pid;
}

void child_process::end_child(int code) {
  ::_exit(code);
}

void child_process::pause() {
  if (!running())
    return;
  ::kill(pid_, SIGSTOP);
  siginfo_t ignored{}; // WNOWAIT: if it has ended, wait() still learns how
  while (::waitid(P_PID, id_t(pid_), &ignored, WSTOPPED | WEXITED | WNOWAIT) < 0
         && errno == EINTR) {
  }
}

void child_process::resume() {
  if (running())
    ::kill(pid_, SIGCONT);
}

void child_process::kill() {
  if (!running())
    return;
  ::kill(pid_, SIGKILL);
  wait();
}

int child_process::wait() {
  int status = 0;
  if (!running())
    return status;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  return status;
}

std::string how_it_ended(int status) {
  return WIFSIGNALED(status)
           ? "ended by signal " + std::to_string(WTERMSIG(status))
           : "ended with code " + std::to_string(WEXITSTATUS(status));
}

} // namespace shoal::runtime
