// runtime/core/training/job/state/duty.cpp -- from an island's place to what it asks of
// one peer.
#include "runtime/core/training/job/state/duty.hpp"

#include <algorithm>

namespace shoal::core {

bool duty::participates() const {
  return std::ranges::binary_search(participants, self);
}

bool duty::seals() const {
  return std::ranges::binary_search(sealers, self);
}

duty duty_under(const std::optional<island_place>& place, const island_id& id,
                const peer_id& self) {
  duty d;
  d.self = self;
  d.header = {id.job, 0, 0, id.index};
  if (!place)
    return d;
  d.place = place;
  d.header = {id.job, digest(id, *place), place->since, id.index};
  d.holds = holdings(*place);
  d.units = d.holds.of(self).held.list();
  d.participants = d.holds.participants();
  for (const member_id& m : place->sealers)
    d.sealers.push_back(m.peer);
  std::ranges::sort(d.sealers);
  return d;
}

void send_to(const std::vector<peer_id>& peers, const peer_id& self,
             const job_message& m, job_actions& out) {
  for (const peer_id& to : peers)
    if (to != self)
      out.emplace_back(job_action::send{to, m});
}

} // namespace shoal::core
