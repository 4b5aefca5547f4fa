// apps/common/orderly_stop.hpp -- how long a run that is to stop may take for that.
//
// A run that is asked to stop ends the step under way and writes a checkpoint.
// A job that runs no steps (it waits for peers, say, or for its data) would
// never get there: then it is ended at once, and if nobody answers, left alone.
//
//   asked --step--> in order: the checkpoint takes as long as it takes
//     `--no step for patience()--> ended at once --end_max--> given up
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace shoal::apps {

class orderly_stop {
public:
  using clock = std::chrono::steady_clock;

  /// At least: as long as a node takes at most to leave
  /// (runtime::leave_deadline).
  static constexpr std::chrono::seconds patience_min{60};
  /// Times the longest step so far: the step under way may be begun anew by
  /// what is left of its peers.
  static constexpr int step_factor = 4;
  /// For the shoal to agree that the job has ended: the requests that wait for
  /// a view (runtime::agreement_wait, 30 s), and its way to us.
  static constexpr std::chrono::seconds end_max{45};

  enum class action {
    none,
    end_at_once, ///< without a checkpoint; said once
    give_up      ///< the shoal does not even do that
  };

  /// A step of the job has ended.
  void stepped(clock::time_point now) {
    if (last_step_ && !asked_)
      longest_ = std::max(longest_, now - *last_step_);
    last_step_ = now;
    in_order_ = in_order_ || asked_;
  }

  /// The run is to stop. Only the first call counts.
  void ask(clock::time_point now) {
    if (!asked_)
      asked_ = now;
  }

  [[nodiscard]] action next(clock::time_point now) {
    if (!asked_ || in_order_)
      return action::none;
    if (ended_)
      return now - *ended_ >= end_max ? action::give_up : action::none;
    if (now - *asked_ < patience())
      return action::none;
    ended_ = now;
    return action::end_at_once;
  }

  /// Until a step must have ended.
  [[nodiscard]] clock::duration patience() const {
    return std::max<clock::duration>(patience_min, step_factor * longest_);
  }

  /// Whether the run was, or is being, ended without a checkpoint.
  [[nodiscard]] bool at_once() const { return ended_.has_value(); }

private:
  std::optional<clock::time_point> asked_;
  std::optional<clock::time_point> last_step_;
  std::optional<clock::time_point> ended_;
  clock::duration longest_{0};
  bool in_order_ = false;
};

} // namespace shoal::apps
