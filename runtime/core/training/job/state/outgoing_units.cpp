// runtime/core/training/job/state/outgoing_units.cpp -- answers to receivers.
#include "runtime/core/training/job/state/outgoing_units.hpp"

#include "runtime/core/planning/arrivals.hpp"

#include <algorithm>

namespace shoal::core {

void outgoing_units::go_on(const duty& d, std::uint32_t unit,
                           const state_version& at, const peer_id& to,
                           job_actions& out) {
  units_[{to, unit}].begun = at;
  out.emplace_back(job_action::send_unit{d.header.digest, unit, at, to, false});
}

void outgoing_units::take(const duty& d, const peer_id& from,
                          const arrival_wanted& m,
                          const std::vector<step_record>& records,
                          job_actions& out) {
  if (!d.mine(m.header) || !d.participates() || d.place->replicas.empty()
      || !d.holds.of(from).arrives.contains(m.unit)
      || d.holds.source(m.unit).peer != d.self)
    return;
  outgoing& unit = units_[{from, m.unit}];
  if (m.attempt > unit.attempt) {
    unit.attempt = m.attempt;
    unit.wanted = true;
  } else if (m.attempt == unit.attempt && m.attempt > 0 && !unit.wanted) {
    out.emplace_back(job_action::send{
      from, arrival_begun{d.header, m.unit, m.attempt, unit.begun}});
  }
  if (m.after == 0)
    return;
  for (const step_record& r : records)
    if (r.version.made == d.header.since && r.version.step >= m.after
        && r.version.step <= m.after + arrival_backlog_max)
      out.emplace_back(
        job_action::send{from, progress{d.header, r, 0, 0, {}, 0}});
}

void outgoing_units::serve(const duty& d, const held_units& held,
                           job_actions& out) {
  for (auto& [key, unit] : units_) {
    const auto& [to, number] = key;
    if (!unit.wanted)
      continue;
    unit.wanted = false;
    unit.begun = held.at(number);
    const bool paced = d.holds.holders(number) > copies_;
    out.emplace_back(job_action::send_unit{d.header.digest, number, unit.begun,
                                           to, true, paced});
    out.emplace_back(job_action::send{
      to, arrival_begun{d.header, number, unit.attempt, unit.begun}});
  }
}

} // namespace shoal::core
