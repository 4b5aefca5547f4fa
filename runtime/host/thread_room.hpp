// runtime/host/thread_room.hpp -- whether this process may start more threads.
//
// The system refuses threads by the limit of processes of the user (ulimit -u)
// or of the control group (pids.max). If that happens in the middle of a start,
// half of the parts wait for the other half, and some libraries do not survive
// it. So a program asks before it starts anything.
//
// Threads: any. Cost: some 20 us per thread.
#pragma once

#include <cstddef>

namespace shoal::runtime {

/// Starts `wanted` idle threads, all at the same time, and ends them.
/// @returns the number that the system allowed
[[nodiscard]] std::size_t try_threads(std::size_t wanted);

} // namespace shoal::runtime
