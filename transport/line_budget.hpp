// transport/line_budget.hpp -- a limit on log lines that other nodes can cause.
//
// Some log lines are caused from outside: a stranger is refused, a dead peer
// does not answer, a peer sends garbage. All such lines of one writer share
// this budget, whatever the number of causes, so that nobody can fill a disk or
// bury the other lines.
//
// L-1: in any n seconds at most `burst` + n * `per_second` lines pass.
// L-2: every line passes or is counted; the next line that passes, or rest(),
//      reports how many were left out.
//
// Pure: no clock, no output.
//
// Threads: one at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace shoal::transport {

struct line_limits {
  /// Enough lines to see at once what is wrong.
  std::size_t burst = 20;
  /// With 100 bytes each: 9 MB a day at most. Higher shows more of a flood.
  std::size_t per_second = 1;
};

class line_budget {
public:
  /// Since any fixed moment.
  using time = std::chrono::nanoseconds;

  explicit line_budget(line_limits limits = {});

  /// @returns the line as it is to be written at `now`; nothing if it is only
  ///          counted
  std::optional<std::string> pass(const std::string& line, time now);

  /// The number of lines left out, as a line of its own; nothing if there were
  /// none, or if no line is allowed yet. For when no line has come for a while.
  std::optional<std::string> rest(time now);

  std::uint64_t left_out() const { return left_out_; }

private:
  bool take(time now);

  line_limits limits_;
  std::uint64_t tokens_; ///< in units of 1 / 10^9: a nanosecond's share
  std::optional<time> counted_;
  std::uint64_t left_out_ = 0;
};

} // namespace shoal::transport
