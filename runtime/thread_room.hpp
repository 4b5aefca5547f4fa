// runtime/thread_room.hpp -- whether this process may start more threads.
//
// The system refuses threads by the limit of processes of the user (ulimit -u)
// or of the control group (pids.max). Where that happens in the middle of a
// start, half of the parts wait for the other half, and some libraries do not
// survive it; so a program asks before it starts anything.
//
// Threads: any. Cost: some 20 us for each thread.
#pragma once

#include <cstddef>

namespace shoal::runtime {

/// Starts `wanted` threads that do nothing, all at one time, and ends them.
/// @returns how many the system has allowed
[[nodiscard]] std::size_t try_threads(std::size_t wanted);

} // namespace shoal::runtime
