// runtime/core/training/job/graceful_change.cpp -- a change of assignment that no
// loss has caused: the step in progress is finished first.
//
// This is no more than a delay, as any peer may learn of a view late. A peer
// that has committed the step takes up the next assignment; so do all others,
// since they have the same votes. A change may look calm on some peers only (a
// peer may have missed a view), and a step may fail to end for other reasons:
// so the step is given up when it takes too long, or when a peer that it needs
// has halted.
#include "runtime/core/training/job/job_core.hpp"

#include <algorithm>

namespace shoal::core {

/// A halt is the best way to keep arrivals in step: their receivers halt at
/// once. And a change of nothing but the number is made because the step stands
/// still.
bool job_core::may_finish(const job_event::view_changed& e) const {
  if (!e.calm || !e.place || !duty_.place || step_took_ == 0
      || (phase_ != phase::running && phase_ != phase::voting)
      || !duty_.place->arriving.empty())
    return false;
  if (seals_.is_early(duty_.participants, e.place->since))
    return false; // from a peer that knew of the change first
  island_place same = *duty_.place;
  same.since = e.place->since;
  return same != *e.place;
}

void job_core::take_up_if_late() {
  if (next_ && now_ - step_began_ > std::min(2 * step_took_, finish_max))
    take_up(job_event::view_changed(*next_));
}

/// A newer seal has come. During the vote, its sender may have committed.
void job_core::take_up_if_halted(const peer_id& from) {
  if (next_ && phase_ == phase::running
      && std::ranges::binary_search(duty_.participants, from))
    take_up(job_event::view_changed(*next_));
}

} // namespace shoal::core
