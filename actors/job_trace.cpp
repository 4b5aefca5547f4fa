// actors/job_trace.cpp -- where a job stands, in the node's trace.
#include "actors/job_actor.hpp"
#include "runtime/timeline.hpp"

namespace shoal::actors {

namespace {

const char* phase_name(core::job_core::phase p) {
  using phase = core::job_core::phase;
  switch (p) {
  case phase::idle:
    return "idle";
  case phase::halting:
    return "halting";
  case phase::sealing:
    return "sealing";
  case phase::restoring:
    return "restoring";
  case phase::gated:
    return "waiting for the text";
  case phase::evaluating:
    return "evaluating";
  case phase::checkpointing:
    return "checkpointing";
  case phase::running:
    return "running";
  case phase::voting:
    return "voting";
  case phase::applying:
    return "applying";
  case phase::standby:
    return "standby";
  case phase::done:
    return "done";
  case phase::over:
    return "over";
  }
  return "unknown";
}

} // namespace

void job_actor::trace_phase() {
  const core::job_core::phase now = core_.now_in();
  if (now == traced_)
    return;
  runtime::timeline& trace = node().trace();
  trace.close(config_.entry.id, phase_name(traced_));
  trace.open(config_.entry.id, phase_name(now),
             {{"step", core_.step_in_progress()}});
  traced_ = now;
}

/// Its share of the step is computed, and not all of it is reduced yet.
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
