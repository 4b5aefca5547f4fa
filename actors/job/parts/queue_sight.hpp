// actors/job/parts/queue_sight.hpp -- what the stall watch of a job sees of a
// queue: how long it has been at its piece of work; and of the links.
#pragma once

#include "runtime/work/device_queue.hpp"

#include <algorithm>

namespace shoal::actors {

/// If a thread of the links shows no activity for this long, it is working on
/// one piece, as a device may be, and the same budget applies. Normally it goes
/// round some hundred thousand times a second, and a round takes milliseconds
/// at most; a host may not give it a core for some time.
inline constexpr core::nanoseconds links_silent_min = 1'000'000'000;

/// How long the queue has been at a piece; 0: it is empty.
/// @param now on the steady clock
inline core::nanoseconds
busy_for(const runtime::device_queue& queue, core::nanoseconds now) {
  const core::nanoseconds since = queue.busy_since();
  return since == 0 ? 0 : std::max<core::nanoseconds>(now - since, 1);
}

/// The same of a piece of this job's work, or of work that no job watches. A
/// piece of another job is watched by that job. The queue is busy then, so no
/// message is lost, but this job must not be blamed for it: 1.
inline core::nanoseconds busy_for(const runtime::device_queue& queue,
                                  core::job_id job, core::nanoseconds now) {
  const runtime::device_queue::piece_in_front front = queue.front();
  if (front.since == 0)
    return 0;
  return front.job == job || front.job == 0 ? busy_for(queue, now) : 1;
}

} // namespace shoal::actors
