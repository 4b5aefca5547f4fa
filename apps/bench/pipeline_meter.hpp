// apps/bench/pipeline_meter.hpp -- how well a pipeline's schedules use its
// stages.
//
// Trains a small model on nodes of this machine, with one stage and one core
// each, and takes from the reports of the steps the share of the computing
// phase in which the stages did not compute. Runs of the schedules alternate.
//
// Units:   seconds; bubbles in per cent of the computing phase.
// Threads: forks, so the caller must have none yet.
// Errors:  std::runtime_error when a process or a run fails.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::apps {

struct pipeline_figures {
  std::string schedule;
  double step = 0;      ///< seconds, median over the runs' steps
  double computing = 0; ///< part of it up to the last backward
  double bubble = 0;    ///< median
};

struct pipeline_times {
  int stages = 0;
  int microbatches = 0;
  /// For 1F1B with equal stages and no transfers: (S - 1) / (M + S - 1).
  double ideal_bubble = 0;
  std::vector<pipeline_figures> schedules; ///< "1f1b" first
  /// The computing phase of 1F1B divided by the ideal one for its stages'
  /// times.
  double over_ideal() const;
};

/// @pre stages >= 2, runs >= 1
pipeline_times measure_pipeline(int stages, int runs);

inline constexpr int pipeline_stages_max = 4;

} // namespace shoal::apps
