// apps/common/metrics_log.hpp -- the steps in a run's metrics.jsonl.
//
// The file may have been edited, and a full disk may have cut a line. A line
// that no run could have written is counted, and proves nothing: one that is no
// event, or a step outside the run. A step that is run again gives up those
// after it: they came from weights that are gone.
//
// Cost: one line in memory, and some 100 bytes for each step.
#pragma once

#include "runtime/core/training/ledger.hpp"

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace shoal::apps {

/// A longer line is no event: their texts have some KiB.
inline constexpr std::size_t metrics_line_bytes_max = 1u << 20;

/// Like std::getline, but keeps only the beginning of a line that is too long.
bool next_metrics_line(std::istream& in, std::string& line);

struct metrics_log {
  std::vector<core::used_data> steps; ///< each once, in their order
  core::findings impossible;          ///< lines, counted from 1
};

/// @param steps  of the run: training.steps
/// @returns what was read; the stream's state tells whether that is all.
[[nodiscard]] metrics_log read_metrics(std::istream& in, std::uint64_t steps);

} // namespace shoal::apps
