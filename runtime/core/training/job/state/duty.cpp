// runtime/core/training/job/state/duty.cpp -- from an assignment to what it asks of
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

duty duty_under(const std::optional<assignment>& place, job_id job,
                const peer_id& self) {
  duty d;
  d.self = self;
  d.on = {job, 0, 0};
  if (!place)
    return d;
  d.place = place;
  d.on = {job, digest(*place), place->since};
  d.units = units_of(*place, self);
  d.participants = participants(*place);
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
