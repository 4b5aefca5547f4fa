// runtime/core/cluster/stalls.cpp -- who is let in again only after a pause.
//
// A member that answers but does no work is found by the jobs (core/training/
// stall_watch.hpp) and expelled by a view. It connects at once and asks to be
// admitted, since nothing tells a peer that was slow for once from one that
// always hangs; the latter would hold the job up again and again. So the view
// counts how often that has happened, and each member of the shoal that would
// admit it waits, from the view on, as long as the count says. Where a job
// waits for members nobody is kept out.
#include "runtime/core/cluster/membership_impl.hpp"

#include <algorithm>

namespace shoal::core::cluster {

using impl = membership::impl;

nanoseconds impl::pause_of(const peer_id& who) const {
  const auto at = std::ranges::find(view_.stalled, who, &stalled_peer::peer);
  if (at == view_.stalled.end())
    return 0;
  nanoseconds pause = config_.stall_pause;
  for (std::uint32_t n = 1; n < at->times && pause < config_.stall_pause_max;
       ++n)
    pause *= 2;
  return std::min(pause, config_.stall_pause_max);
}

/// With every new view. A member that has just come, or come back, takes whom
/// it finds out for just expelled.
void impl::note_stalls() {
  std::erase_if(stalls_, [this](const auto& x) {
    return std::ranges::find(view_.stalled, x.first, &stalled_peer::peer)
           == view_.stalled.end();
  });
  for (const stalled_peer& p : view_.stalled) {
    stall& s = stalls_[p.peer];
    const bool out = find_member(view_, p.peer) == nullptr;
    if (s.since != p.since && out) {
      s.until = now_ + pause_of(p.peer);
      wishes_.joins.erase(p.peer); // of before
    }
    s.since = p.since;
    s.back_since = out ? time_max : std::min(s.back_since, now_);
  }
  jobs_wait_ = false;
  if (!stalls_.empty() && running() > 0 && config_.plan_jobs != nullptr)
    jobs_wait_ =
      std::ranges::any_of(config_.plan_jobs(view_), [](const assignment& a) {
        return a.replicas.empty();
      });
}

bool impl::stays_out(const peer_id& who) const {
  const auto at = stalls_.find(who);
  return at != stalls_.end() && now_ < at->second.until && !jobs_wait_;
}

/// Whether it has been back for long, as far as we know.
bool impl::was_well(const peer_id& who) const {
  const auto at = stalls_.find(who);
  return at != stalls_.end()
         && now_ - config_.stall_memory >= at->second.back_since;
}

} // namespace shoal::core::cluster
