// apps/common/signals.hpp -- Ctrl-C once: finish in order; again: stop.
//
// Make one before any thread is started: it blocks SIGINT and SIGTERM in this
// thread, and so in all that it starts later, and waits for them on a thread
// of its own. Which signal counts, signal_order.hpp decides. The second one
// ends the process at once with exit_interrupted.
//
// Threads: `first` runs on a thread of its own, so that a second signal is
//          noticed while `first` waits for an answer; on the waiting thread
//          where the system gives no other.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace shoal::apps {

class signals {
public:
  signals();
  ~signals(); ///< end_first()
  signals(const signals&) = delete;
  signals& operator=(const signals&) = delete;

  /// What the first signal does; may be set later than it came.
  void on_first(const std::function<void()>& run);
  /// What the second signal says before the process ends. One line.
  void on_second(std::string line);
  /// Returns when `first` does not run, and keeps it from running later.
  void end_first();
  bool seen() const noexcept { return seen_; }

private:
  void wait();
  struct state;
  std::unique_ptr<state> state_;
  std::atomic<bool> seen_{false};
};

} // namespace shoal::apps
