// actors/job/parts/job_past.cpp -- steps from the events that job_remarks logs.
#include "actors/job/parts/job_past.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace shoal::actors {
namespace {

/// Events of earlier releases have no count of bad steps.
std::uint32_t bad_steps_of(const runtime::job_event& e) {
  if (std::isfinite(e.loss) && std::isfinite(e.grad_norm))
    return 0;
  return std::clamp(e.bad_steps, 1u, core::bad_steps_max);
}

} // namespace

job_past past_of(const std::vector<runtime::job_event>& events,
                 std::uint32_t island, std::uint64_t interval) {
  const auto is_step = [&](const runtime::job_event& e) {
    return e.kind == runtime::job_event_kind::step && e.island == island;
  };
  job_past out;
  for (const runtime::job_event& e : events)
    if (is_step(e)
        && std::pair(e.epoch, e.step)
             > std::pair(out.last.version.made, out.last.version.step))
      out.last = {{e.step, e.epoch}, e.loss, e.grad_norm, e.peers, 1, e.data,
                  bad_steps_of(e)};
  // Steps far above the newest one were run before a loss that was accepted.
  for (const runtime::job_event& e : events)
    if (is_step(e) && e.step <= out.last.version.step + interval)
      out.top = std::max(out.top, e.step);
  std::map<std::uint64_t, std::uint64_t> lowest; // step of each epoch
  for (const runtime::job_event& e : events)
    if (is_step(e)) {
      std::uint64_t& step = lowest.try_emplace(e.epoch, e.step).first->second;
      step = std::min(step, e.step);
    }
  // Steps that were run again have begun another history.
  for (const runtime::job_event& e : events)
    if (e.kind == runtime::job_event_kind::eval && e.island == island
        && std::all_of(lowest.upper_bound(e.epoch), lowest.end(),
                       [&](const auto& l) { return l.second > e.step; }))
      out.evaluated = std::max(out.evaluated, e.step + 1);
  return out;
}

} // namespace shoal::actors
