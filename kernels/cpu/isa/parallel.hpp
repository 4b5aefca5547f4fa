// kernels/cpu/isa/parallel.hpp -- how operations are cut into tasks.
//
// The cut depends on the shape alone, never on the number of threads, so that a
// sum inside one task has one order.
#pragma once

#include "kernels/common/thread_team.hpp"

#include <algorithm>
#include <cstddef>

namespace shoal::kernels::cpu {

/// The least number of values in a task: some 10 us at 2-8 GB/s, several times
/// the cost of handing a task to a thread that sleeps. Higher means less
/// overhead and fewer tasks to distribute.
inline constexpr std::size_t task_values = 16384;

/// Calls body(first, last) for ranges that cover [0, count), each of at least
/// task_values / cost items, where `cost` is the values that one item moves.
template <class Body>
void for_ranges(thread_team& team, std::size_t count, std::size_t cost,
                const Body& body) {
  auto step =
    std::max<std::size_t>(1, task_values / std::max<std::size_t>(1, cost));
  team.run((count + step - 1) / step, [&](std::size_t task, unsigned) {
    body(task * step, std::min(count, (task + 1) * step));
  });
}

/// Bytes of weights that one task of a product of few tokens reads: at least
/// some 4 us at 16 GB/s, several times the cost of taking a task, and few
/// enough that threads finish together. Up to four times as many in a large
/// product, since a prefetch past the end of a task reads the memory of another
/// task.
inline constexpr std::size_t task_bytes = 64 << 10;
inline constexpr std::size_t task_bytes_max = 256 << 10;
inline constexpr std::size_t tasks_of_thread = 8;

/// Calls body(first, last) for ranges of `count` items of `bytes` each. The
/// size of a range is a multiple of `together` items, except for the last.
template <class Body>
void for_bytes(thread_team& team, std::size_t count, std::size_t bytes,
               std::size_t together, const Body& body) {
  const auto of_task =
    std::clamp(count * bytes / (team.size() * tasks_of_thread), task_bytes,
               task_bytes_max);
  const auto least = of_task / std::max<std::size_t>(1, bytes);
  const auto step = (least / together + 1) * together;
  team.run((count + step - 1) / step, [&](std::size_t task, unsigned) {
    body(task * step, std::min(count, (task + 1) * step));
  });
}

} // namespace shoal::kernels::cpu
