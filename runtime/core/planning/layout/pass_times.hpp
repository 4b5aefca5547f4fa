// runtime/core/planning/layout/pass_times.hpp -- how long a pass takes on the
// stages of a served model's pipeline.
//
// The entry of a job that serves has the costs of one kind of pass, by which
// places are compared. Passes differ: that of a prompt is bound by arithmetic,
// that of a few sequences that generate by the memory of the weights. With the
// costs of any of them, the times in the same place follow.
//
// Units: nanoseconds, bytes. Threads: pure functions.
#pragma once

#include "runtime/core/planning/layout/cost.hpp"

namespace shoal::core {

struct view; // runtime/core/view.hpp

/// Costs of a pass, in the place of those fields of job_entry.
struct pass_costs {
  std::uint64_t block_flops = 0;
  std::uint64_t head_flops = 0;
  std::uint64_t block_traffic_bytes = 0;
  std::uint64_t head_traffic_bytes = 0;
  std::uint64_t boundary_bytes = 0;
};

struct pass_times {
  /// From the first stage to the chosen tokens.
  nanoseconds through = 0;
  /// Between the ends of two passes, if many follow each other: the time of the
  /// slowest stage or link.
  nanoseconds apart = 0;
};

/// The times of a pass on the pipeline of `place`, with nothing else on its
/// members; zero if the place has none.
[[nodiscard]] pass_times
times_of_pass(const view& v, const job_entry& job, const island_place& place,
              const pass_costs& costs);

} // namespace shoal::core
