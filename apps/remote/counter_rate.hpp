// apps/remote/counter_rate.hpp -- the speed of a counter, from its values in
// several answers.
//
// Time: arguments. Threads: one at a time.
#pragma once

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

namespace shoal::apps {

/// The speed of a counter over the last seconds. A counter that falls begins anew:
/// its process was started again.
class counter_rate {
public:
  using time = std::chrono::nanoseconds; ///< of a clock that does not go back
  /// Long enough that steps of some seconds do not show as bursts and pauses.
  static constexpr std::chrono::seconds window{5};

  void add(double value, time now);
  /// Nothing before there are two values.
  [[nodiscard]] std::optional<double> per_s() const;

private:
  /// A few: a deque would take half a kilobyte, and there are many of these.
  std::vector<std::pair<time, double>> values_;
};

} // namespace shoal::apps
