// actors/job/parts/job_past.hpp -- what an earlier process of this peer has
// reported of an island of a job, read from the job's log.
//
// A log may lack steps: those of the time before the peer was a member, or of a
// history that was given up. So each event has all that is needed of its step.
#pragma once

#include "runtime/core/training/job_messages.hpp"
#include "runtime/jobs/job_log.hpp"

#include <cstdint>
#include <vector>

namespace shoal::actors {

struct job_past {
  core::step_record last; ///< the newest step that was reported
  std::uint64_t top = 0;  ///< the largest; of those run before an accepted loss
                          ///< none counts
  std::uint64_t evaluated = 0; ///< newest step + 1 evaluated, of this history
};

/// @param interval steps between checkpoints
[[nodiscard]] job_past past_of(const std::vector<runtime::job_event>& events,
                               std::uint32_t island, std::uint64_t interval);

} // namespace shoal::actors
