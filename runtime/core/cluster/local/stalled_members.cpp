// runtime/core/cluster/local/stalled_members.cpp -- pauses after expulsions.
#include "runtime/core/cluster/local/stalled_members.hpp"

#include <algorithm>

namespace shoal::core::cluster {

bool jobs_wait(const std::vector<assignment>& planned) {
  return std::ranges::any_of(planned, [](const assignment& a) {
    return std::ranges::any_of(
      a.islands, [](const island_place& at) { return at.replicas.empty(); });
  });
}

nanoseconds
stalled_members::pause_of(const view& v, const peer_id& peer) const {
  const auto found = std::ranges::find(v.stalled, peer, &stalled_peer::peer);
  if (found == v.stalled.end())
    return 0;
  nanoseconds pause = pauses_.first;
  for (std::uint32_t n = 1; n < found->times && pause < pauses_.longest; ++n)
    pause *= 2;
  return std::min(pause, pauses_.longest);
}

std::vector<peer_id> stalled_members::follow(const view& v, nanoseconds now) {
  std::erase_if(stalled_, [&](const auto& entry) {
    return std::ranges::find(v.stalled, entry.first, &stalled_peer::peer)
           == v.stalled.end();
  });
  std::vector<peer_id> expelled;
  for (const stalled_peer& p : v.stalled) {
    stall& s = stalled_[p.peer];
    const bool out = find_member(v, p.peer) == nullptr;
    if (s.since != p.since && out) {
      s.until = now + pause_of(v, p.peer);
      expelled.push_back(p.peer);
    }
    s.since = p.since;
    s.back_since = out ? time_max : std::min(s.back_since, now);
  }
  const auto runs = [](const job_entry& j) {
    return j.state == job_state::running;
  };
  jobs_wait_ = !stalled_.empty() && plan_jobs_ != nullptr
               && std::ranges::any_of(v.jobs, runs) && jobs_wait(plan_jobs_(v));
  return expelled;
}

bool stalled_members::stays_out(const peer_id& peer, nanoseconds now) const {
  const auto found = stalled_.find(peer);
  return found != stalled_.end() && now < found->second.until && !jobs_wait_;
}

bool stalled_members::was_well(const peer_id& peer, nanoseconds now) const {
  const auto found = stalled_.find(peer);
  return found != stalled_.end()
         && now - pauses_.memory >= found->second.back_since;
}

} // namespace shoal::core::cluster
