// actors/supervisor.hpp -- makes what runs on this node agree with the plan.
//
// One per node. For every job of the view there is a job actor here, whether or
// not the plan gives this peer a part in it: it may hold state that others
// need. A failure is nothing special: it leads to another view, hence another
// plan.
//
// Message          Effect
// view_changed     starts jobs, gives each its place, ends those that are over
// job_message_in   passed to its job; kept for a while if the view that brings
//                  the job is still in transit
// drain_job        passed to the job
// blobs_left_behind  of a client without a job: removed if nobody needs them
// job_holds        the state that a job still holds here
// leaving_alone    passed to all jobs
// node_stopping    when nothing here is needed any more: context.released()
#pragma once

#include "runtime/context.hpp"

namespace shoal::actors {

caf::actor spawn_supervisor(caf::actor_system& system, runtime::context& node);

/// Adds the roles that every shoal has.
void add_builtin(runtime::role_table& roles);

} // namespace shoal::actors
