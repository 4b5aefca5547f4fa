// apps/terminal/orderly_stop.hpp -- time limits for stopping a run.
//
// A run that is asked to stop finishes the current step and writes a
// checkpoint. A job that runs no steps (it waits for peers or for its data, for
// example) would never finish: then it is ended at once, and if the shoal does
// not answer, the command gives up.
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

  /// Minimum: the longest time that a node takes to leave
  /// (runtime::leave_deadline).
  static constexpr std::chrono::seconds patience_min{60};
  /// Multiple of the longest step so far: the remaining peers may have to begin
  /// the current step anew.
  static constexpr int step_factor = 4;
  /// Time for the shoal to agree on the end of the job: that of requests that
  /// wait for a view (runtime::agreement_wait, 30 s), and the answer's way
  /// back.
  static constexpr std::chrono::seconds end_max{45};

  enum class action {
    none,
    end_at_once, ///< without a checkpoint; returned once
    give_up      ///< the shoal does not even end the job
  };

  /// A step of the job has ended.
  void stepped(clock::time_point now) {
    if (last_step_ && !asked_)
      longest_ = std::max(longest_, now - *last_step_);
    last_step_ = now;
    in_order_ = in_order_ || asked_;
  }

  /// The run has to stop. Only the first call counts.
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

  /// Time within which a step must have ended.
  [[nodiscard]] clock::duration patience() const {
    return std::max<clock::duration>(patience_min, step_factor * longest_);
  }

  /// Whether the run was ended, or is being ended, without a checkpoint.
  [[nodiscard]] bool at_once() const { return ended_.has_value(); }

private:
  std::optional<clock::time_point> asked_;
  std::optional<clock::time_point> last_step_;
  std::optional<clock::time_point> ended_;
  clock::duration longest_{0};
  bool in_order_ = false;
};

} // namespace shoal::apps
