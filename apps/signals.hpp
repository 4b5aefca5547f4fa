// apps/signals.hpp -- Ctrl-C once: finish in order; twice: stop.
//
// Make one before any thread is started: it blocks SIGINT and SIGTERM in this
// thread, and so in all that it starts later, and waits for them on a thread
// of its own. The second signal ends the process at once with code 1.
//
// Threads: `first` runs on the waiting thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

namespace shoal::apps {

class signals {
public:
  signals();
  ~signals();
  signals(const signals&) = delete;
  signals& operator=(const signals&) = delete;

  /// What the first signal does; may be set later than it came.
  void on_first(const std::function<void()>& run);
  bool seen() const noexcept { return count_ > 0; }

private:
  void wait();
  struct state;
  std::unique_ptr<state> state_;
  std::atomic<int> count_{0};
};

} // namespace shoal::apps
