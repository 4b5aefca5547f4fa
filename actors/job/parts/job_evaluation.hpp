// actors/job/parts/job_evaluation.hpp -- the parts of an evaluation that one
// peer waits for.
//
// An evaluation is over on this peer when its stage of the first replica, its
// evaluator, or both have reported. Only the evaluator's report has the loss.
//
// Part of a job actor; it needs nothing of the node.
//
// Threads: the owner's.
#pragma once

#include "actors/training/evaluator.hpp"

#include <cstdint>
#include <optional>

namespace shoal::actors {

class job_evaluation {
public:
  class events {
  public:
    /// @param sum none: the evaluator is elsewhere
    virtual void
    evaluated(std::uint64_t step, const std::optional<eval_summed>& sum) = 0;

  protected:
    ~events() = default;
  };

  /// @param to outlives this object
  explicit job_evaluation(events& to) : to_(to) {}

  /// Waits for the stage, the evaluator, both or neither.
  void begin(std::uint64_t step, bool stage, bool evaluator);
  /// The stage has computed its part.
  void computed(std::uint64_t step);
  void summed(const eval_summed& sum);
  /// Ignores all that belongs to the evaluation in progress.
  void halt();

private:
  void end_part();

  events& to_;
  std::optional<std::uint64_t> step_; ///< none: no evaluation in progress
  int parts_ = 0;                     ///< missing
  std::optional<eval_summed> sum_;
};

} // namespace shoal::actors
