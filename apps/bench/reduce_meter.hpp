// apps/bench/reduce_meter.hpp -- the speed of sums of floats between processes
// of this machine.
//
// Starts nodes in processes of their own, like a user would, with a role that
// sums an array over all of them by actors/reduction/all_reduce.hpp, over the
// fabric that they choose. Every sum is checked.
//
// Units:   seconds and bytes.
// Threads: forks, so the caller must have none yet.
// Errors:  std::runtime_error when a process fails, or a sum is wrong.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

namespace shoal::apps {

/// Seconds of each run, by size in bytes: the time of its slowest process, from
/// a barrier until the sum is in place there.
using reduce_times = std::map<std::size_t, std::vector<double>>;

/// @pre 2 <= processes <= reduce_processes_max; sizes are multiples of 4
reduce_times
measure_all_reduce(int processes, std::vector<std::size_t> sizes, int runs);

inline constexpr int reduce_processes_max = 16;

} // namespace shoal::apps
