// runtime/host/child_process.hpp -- a child of this process, and its end.
//
// Owns the child: the destructor kills it and waits for it, once. `work` runs in
// the child, right after the fork, and sets up its descriptors and namespaces. If
// this process has several threads, `work` may only do what is
// async-signal-safe.
//
// Threads: an object is used by one thread at a time.
// Errors:  std::runtime_error from fork(), when the system has no room.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

namespace shoal::runtime {

class child_process {
public:
  child_process() = default;
  ~child_process();
  child_process(child_process&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)) {}
  child_process& operator=(child_process&& other) noexcept;

  /// In the child calls `work()`, and ends with the exit code it returns,
  /// without destructors or atexit handlers of this process. An exception
  /// ends it by SIGABRT.
  template <class Work>
  static child_process fork(Work&& work) {
    child_process child(fork_now());
    if (child.pid_ == 0)
      end_child([&]() noexcept -> int { return work(); }());
    return child;
  }

  /// False before fork(), and after kill() or wait().
  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }

  // Without effect unless running().
  void pause();  ///< SIGSTOP, and waits until the child has stopped or ended
  void resume(); ///< SIGCONT
  void kill();   ///< SIGKILL, and waits for the child's end
  /// Waits for the child's end. @returns waitpid()'s status; 0 unless running()
  int wait();

private:
  explicit child_process(pid_t pid) : pid_(pid) {}
  static pid_t fork_now();
  [[noreturn]] static void end_child(int code);

  pid_t pid_ = 0;
};

/// "ended by signal 9" or "ended with code 3". @param status of wait()
std::string how_it_ended(int status);

} // namespace shoal::runtime
