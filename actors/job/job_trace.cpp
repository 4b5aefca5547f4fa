// actors/job/job_trace.cpp -- a job's entries in the node's trace.
#include "actors/job/job_actor.hpp"
#include "runtime/observe/timeline.hpp"

namespace shoal::actors {

void job_actor::trace_phase() {
  const core::job_core::phase now = core_.now_in();
  if (now == traced_)
    return;
  runtime::timeline& trace = node().trace();
  trace.close(config_.entry.id, to_text(traced_));
  trace.open(config_.entry.id, to_text(now),
             {{"step", core_.step_in_progress()}});
  traced_ = now;
}

/// This peer's share of the step is computed, but not yet completely reduced.
void job_actor::trace_reducing(bool now) {
  if (now == reducing_)
    return;
  reducing_ = now;
  if (now)
    node().trace().open(config_.entry.id, "reducing",
                        {{"step", core_.step_in_progress()}});
  else
    node().trace().close(config_.entry.id, "reducing");
}

} // namespace shoal::actors
