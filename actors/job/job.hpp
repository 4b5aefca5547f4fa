// actors/job/job.hpp -- one island of a training job on this peer: the shell of
// core::job_core.
//
// Turns messages into calls on job_core and its actions into messages,
// transfers, device work, and the actors of each sub-plan. It decides
// nothing itself.
//
// Message            Effect
// job_view           the job's place in a newer view (or that it has ended)
// job_message_in     a control message of another peer; shards_written goes to
//                    the checkpointer
// drain_job          stop after the step in progress, with a checkpoint
// leaving_alone      save the state that is here: no other peer will have it
// stop_waiting_job   go on without the checkpoint that the job waits for
// checkpoint_offered a checkpoint that the job has made is in the store again
// step_reduced, eval_computed, eval_summed, checkpoint_written
//                    from the sub-plan's actors
// (private)          completions of device and disk work and of transfers
//
// To the supervisor: job_holds whenever the state held here changes. The actor
// ends by itself when the job has left the view.
#pragma once

#include "actors/checkpoint/needed_checkpoints.hpp"
#include "runtime/context.hpp"
#include "runtime/core/assignment.hpp"
#include "runtime/core/job_entry.hpp"

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include <atomic>
#include <memory>
#include <optional>

namespace shoal::actors {

/// A view's information about one job.
struct job_view {
  std::shared_ptr<const core::view> view;
  std::optional<core::assignment> place; ///< none: it no longer runs
};

/// The amount of an island's state on this peer.
struct job_holds {
  core::island_id id;
  std::size_t units = 0;
  bool finished = false; ///< its last step is done, as far as this peer knows
};

struct job_config {
  runtime::context* node = nullptr;
  core::job_entry entry;
  std::uint32_t island = 0;
  caf::actor supervisor;
  /// Time when the actor last ran, on the steady clock, for its supervisor. May
  /// be null.
  std::shared_ptr<std::atomic<core::nanoseconds>> alive;
  /// What the islands on this node need; one for all of them.
  std::shared_ptr<needed_checkpoints> needed;
};

/// @returns nothing if the job's run description cannot be read; that is
/// logged.
std::optional<caf::actor>
spawn_job(caf::actor_system& system, job_config config, std::string& why);

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::job_view)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::job_holds)
