// runtime/control/missed_events.cpp -- reads logs from their beginnings.
#include "runtime/control/missed_events.hpp"

#include <utility>

namespace shoal::runtime {

bool missed_events::read(const asker& ask) {
  std::uint64_t from = 0;
  for (;;) {
    client_reply reply;
    if (!ask({job_, from}, reply))
      return false;
    bool more = !reply.ended && !reply.events.empty() && reply.value > from;
    from = reply.value;
    for (const job_event& e : reply.events) {
      const bool step = e.kind == job_event_kind::step;
      more = more && !(step && e.step >= next_);
      if ((!step && e.kind != job_event_kind::eval) || e.step <= last_
          || e.step >= next_)
        continue;
      found_.emplace(std::tuple(e.step, static_cast<int>(e.kind), e.epoch), e);
      if (step)
        steps_.insert(e.step);
    }
    if (!more)
      return true;
  }
}

std::vector<job_event> missed_events::take() {
  std::vector<job_event> out;
  out.reserve(found_.size());
  for (auto& [key, e] : std::exchange(found_, {}))
    out.push_back(e);
  return out;
}

} // namespace shoal::runtime
