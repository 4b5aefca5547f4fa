// apps/terminal/slow_work.hpp -- shows the progress of slow work.
//
// A model::watch: silent for quiet_for, then "shoal: evaluating: 34 %, 2:10
// left". On a terminal that is one line, which is rewritten and removed at the
// end; in a log it is an occasional line. Used by all commands.
//
// Threads: one.
#pragma once

#include "runtime/core/watch.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace shoal::apps {

class slow_work {
public:
  using clock = std::chrono::steady_clock;
  /// Nobody is impatient sooner, and a line that vanishes at once is no help.
  static constexpr std::chrono::seconds quiet_for{2};
  /// Often enough to show that it moves.
  static constexpr std::chrono::milliseconds apart_on_terminal{500};
  /// The log of a night has some thousand lines at most.
  static constexpr std::chrono::seconds apart_in_log{30};

  /// @param out  the error output, since stdout has the results
  explicit slow_work(std::ostream& out = std::cerr,
                     bool terminal = isatty(STDERR_FILENO) == 1,
                     std::function<clock::time_point()> now = clock::now)
    : out_(out), terminal_(terminal), now_(std::move(now)),
      next_(now_() + quiet_for) {}
  slow_work(const slow_work&) = delete;
  slow_work& operator=(const slow_work&) = delete;
  ~slow_work() { settle(); }

  /// @param all  0: unknown; `done` is then a number of bytes
  void at(std::string_view what, std::uint64_t done, std::uint64_t all) {
    const auto now = now_();
    if (what != what_) {
      what_ = what;
      since_ = now;
      done_before_ = done;
    }
    if (now < next_)
      return;
    if (terminal_)
      next_ = now + apart_on_terminal;
    else
      next_ = now + apart_in_log;
    out_ << (open_ ? "\r\x1b[K" : "") << "shoal: " << what << ": "
         << (all > 0 ? share(done, all) + left(now, done, all)
                     : std::to_string(done >> 20) + " MiB");
    open_ = terminal_;
    if (terminal_)
      out_ << std::flush;
    else
      out_ << std::endl;
  }

  /// Removes a line that is being rewritten: other lines may follow.
  void settle() {
    if (open_)
      out_ << "\r\x1b[K" << std::flush;
    open_ = false;
  }

private:
  static std::string share(std::uint64_t done, std::uint64_t all) {
    return std::to_string(static_cast<int>(100.0 * double(done) / double(all)))
           + " %";
  }
  /// The rate of work of this kind so far.
  std::string
  left(clock::time_point now, std::uint64_t done, std::uint64_t all) const {
    if (done <= done_before_ || done >= all || now <= since_)
      return {};
    const std::chrono::duration<double> so_far = now - since_;
    const auto s = std::uint64_t(so_far.count() * double(all - done)
                                 / double(done - done_before_));
    char text[48];
    std::snprintf(text, sizeof text, ", %llu:%02llu left",
                  (unsigned long long)(s / 60), (unsigned long long)(s % 60));
    return text;
  }

  std::ostream& out_;
  bool terminal_;
  std::function<clock::time_point()> now_;
  clock::time_point next_;
  std::string what_;
  clock::time_point since_;       ///< of this kind of work
  std::uint64_t done_before_ = 0; ///< at the first report
  bool open_ = false;             ///< a line is being rewritten
};

/// Shows the progress of slow work, and cancels it where `goes_on` is false.
inline model::watch shown_work(std::function<bool()> goes_on) {
  auto slow = std::make_shared<slow_work>();
  return [slow, goes_on = std::move(goes_on)](
           std::string_view what, std::uint64_t done, std::uint64_t all) {
    slow->at(what, done, all);
    return goes_on();
  };
}

} // namespace shoal::apps
