// apps/common/metrics_log.hpp -- the steps in a run's metrics.jsonl.
//
// The file may have been edited, and a full disk may have cut a line. A line
// that no run could have written is counted, and proves nothing: one that is no
// event, or a step outside the run.
//
// Lines are in the order in which they were learned, which is not always that
// of the run: `shoal attach` appends what the log of another peer has, and that
// may be older. After a split by `recover --force` it is also the branch that
// was abandoned, with the same steps. So the order is that of the plans by which
// steps were made: an epoch never falls within a job, and a resumed run's next
// job, whose epochs may begin anew, follows a line that tells of it.
//
// The model has one line for each of its steps. From its last step back, that is
// the line of the newest plan that is no newer than the one of the step after:
//
//     epoch 133      1 2 3 4              1-2
//     epoch 134            4 5 6 7 8          (abandoned)
//     epoch 1000133      3 4 5 6              3-6
//     epoch 1000135              7 8              7-8
//
// The last step is that of the newest plan that reached the newest checkpoint.
//
// Within one shoal, a plan gives up the steps of older plans from its own first
// step on, since the weights that they made are gone: they fill no gap of the
// log after that. The two branches of a split do fill each other's gaps. Which
// of them the run went on from is not known, and a step has the same samples in
// both. So the lines of another branch, added later, take no step away.
//
// Within a plan, as in logs without epochs, a step that is run again gives up
// those after it, in the order of the file.
//
// Cost: one line in memory, and some 150 bytes for each line of a step.
#pragma once

#include "runtime/core/training/ledger.hpp"
#include "runtime/jobs/job_log.hpp"

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::apps {

/// A longer line is no event: their texts have some KiB.
inline constexpr std::size_t metrics_line_bytes_max = 1u << 20;

/// A command's notice that begins so stands before the lines of the next job.
inline constexpr std::string_view resuming_text = "resuming from ";
bool begins_job(const runtime::job_event& event);

/// Like std::getline, but keeps only the beginning of a line that is too long.
bool next_metrics_line(std::istream& in, std::string& line);

struct metrics_log {
  std::vector<core::used_data> steps; ///< each once, in their order
  core::findings impossible;          ///< lines, counted from 1
};

/// @param steps  of the run: training.steps
/// @param newest  step of the newest checkpoint; 0: there is none
/// @returns what was read; the stream's state tells whether that is all.
[[nodiscard]] metrics_log
read_metrics(std::istream& in, std::uint64_t steps, std::uint64_t newest);

} // namespace shoal::apps
