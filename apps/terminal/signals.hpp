// apps/terminal/signals.hpp -- Ctrl-C once: finish in order; again: stop.
//
// Make one before any thread is started: it blocks SIGINT, SIGTERM and SIGHUP
// (its terminal was closed) in this thread, and so in all that it starts later,
// and waits for them on a thread of its own. signal_order.hpp decides which
// signal counts. The second one ends the process at once with exit_interrupted.
// If the process was started with SIGHUP ignored (`nohup`), it stays ignored.
//
// Threads: `first` runs on a thread of its own, so that a second signal is
//          noticed while `first` waits for an answer; on the waiting thread if
//          the system provides no other.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace shoal::apps {

/// How a second signal is asked for; see signal_order::apart_min.
inline constexpr const char* again_text =
  "Ctrl-C again, a second or more later: stop at once";

class signals {
public:
  signals();
  ~signals(); ///< calls end_first()
  signals(const signals&) = delete;
  signals& operator=(const signals&) = delete;

  /// Sets the reaction to the first signal; may be called after the signal
  /// came.
  void on_first(const std::function<void()>& run);
  /// Sets the text for the second signal, printed before the process ends. One
  /// line.
  void on_second(std::string line);
  /// From now on SIGHUP ends the process at once, like a second signal: there is
  /// nothing to do in order, or it takes longer than anybody watches. Also if it
  /// came before.
  /// @param line  printed before that; one line
  void hangup_ends(std::string line);
  /// Returns when `first` is not running, and prevents it from running later.
  void end_first();
  bool seen() const noexcept { return seen_; }

private:
  void wait();
  struct state;
  std::unique_ptr<state> state_;
  std::atomic<bool> seen_{false};
};

} // namespace shoal::apps
