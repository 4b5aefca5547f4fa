// apps/terminal/line_printer.hpp -- lines to a file descriptor whose reader may
// stall.
//
// A terminal stopped by Ctrl-S, or a pipe without a reading process, must not
// block the threads of a node. Lines wait in a bounded queue for a thread that
// writes them. Lines over the bound are left out, and before the next line that
// fits comes one with their number.
//
// Threads: line() from any; it never waits for the reader.
// Life:    the destructor writes the rest until the reader has accepted nothing
//          for drain_max.
// Errors:  text that cannot be written (the reader is gone) is dropped
//          silently.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace shoal::apps {

class line_printer {
public:
  /// Waiting bytes: minutes of a node's lines, and little compared to its
  /// model.
  static constexpr std::size_t queue_bytes_max = std::size_t{1} << 20;
  static constexpr std::chrono::milliseconds drain_max{1000};

  /// `left_out` makes the line that replaces that many missing ones.
  line_printer(int fd, std::function<std::string(std::size_t)> left_out);
  ~line_printer();
  line_printer(const line_printer&) = delete;
  line_printer& operator=(const line_printer&) = delete;

  /// Queues `text` and a newline, or counts it as left out.
  void line(std::string text);

private:
  void run();
  bool write_all(const std::string& text);
  bool writable();

  int fd_;
  std::function<std::string(std::size_t)> left_out_;
  std::mutex mutex_; ///< guards what follows
  std::condition_variable wake_;
  std::deque<std::string> queue_;
  std::size_t queued_bytes_ = 0;
  std::size_t missing_ = 0; ///< left out since the last line that fitted
  bool closing_ = false;
  std::chrono::steady_clock::time_point end_{};
  std::thread thread_;
};

} // namespace shoal::apps
