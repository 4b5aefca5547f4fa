// runtime/core/training/job_calm.cpp -- a change of assignment that nobody's
// loss has caused: the step in progress is finished first.
//
// That is no more than a delay, as any peer may learn of a view late. Whoever
// has committed the step takes the next assignment up; so do all others, since
// they have the same votes. Not every change is calm everywhere (a peer may
// have missed a view), and a step may fail to end for other reasons: so it is
// given up when it takes too long, or when a peer that it needs has halted.
#include "runtime/core/training/job_core.hpp"

#include <algorithm>

namespace shoal::core {

/// What arrives is best kept in step by a halt: its receivers halt at once.
/// And a change in nothing but the number is made because the step stands
/// still.
bool job_core::may_finish(const job_event::view_changed& e) const {
  if (!e.calm || !e.place || !place_ || step_took_ == 0
      || (phase_ != phase::running && phase_ != phase::voting)
      || !place_->arriving.empty())
    return false;
  for (const auto& [from, s] : later_) // of those who knew before us
    if (s.on.since >= e.place->since
        && std::ranges::binary_search(participants_, from))
      return false;
  assignment same = *place_;
  same.since = e.place->since;
  return same != *e.place;
}

void job_core::take_up_if_late() {
  if (next_ && now_ - step_began_ > std::min(2 * step_took_, finish_max))
    take_up(job_event::view_changed(*next_));
}

/// A newer seal has come. In the vote it may be of one who has committed.
void job_core::take_up_if_halted(const peer_id& from) {
  if (next_ && phase_ == phase::running
      && std::ranges::binary_search(participants_, from))
    take_up(job_event::view_changed(*next_));
}

} // namespace shoal::core
