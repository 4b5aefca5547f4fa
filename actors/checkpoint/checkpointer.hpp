// actors/checkpoint/checkpointer.hpp -- completes a checkpoint from the
// writers' shards.
//
// One on each participant of a job; each checkpoint has one of them as
// publisher (core: publisher_of). When every unit's shard has been reported
// (runtime/core/training/shards.hpp) the publisher fetches those that its own
// store lacks directly from their writers; then the disk queue writes indexes,
// small files and, last of all, the manifest (checkpoint_files.hpp). A
// checkpoint that exists is therefore complete in one store; or if keepers share
// the parts, each part is with its writer. The run goes on meanwhile; a few
// checkpoints may be in progress.
//
// Message            Effect
// begin_checkpoint   a checkpoint of this step is wanted
// shards_told        the report of a writer (core::shards_written)
//
// To its owner: checkpoint_written.
// Errors: no disk or no space, here or at a writer: reported, and the run goes
//         on without this checkpoint; if the own disk refuses, another peer
//         publishes from now on. The last checkpoint of a run is tried until it
//         is written, or all begin anew so that others write it.
// Limits: under_way_max.
#pragma once

#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/training/training_state.hpp"
#include "runtime/context.hpp"

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>

namespace shoal::actors {

struct begin_checkpoint {
  std::uint64_t step = 0;
  bool last = false;
  std::vector<core::peer_id> unable; ///< cannot write; others do
};
struct shards_told {
  core::peer_id from{};
  core::shards_written what;
};
struct checkpoint_written {
  std::uint64_t digest = 0; ///< of the sub-plan under which it was begun
  std::uint64_t step = 0;
  bool ok = false;
  published what;
  std::string why;      ///< reason of a failure
  bool trying = false;  ///< failed so far: another message follows
  core::peer_id at{};   ///< the peer that failed; zero: none in particular
  core::part_set lacks; ///< if ok: parts that the own store does not have
};

struct checkpointer_config {
  world_ptr world;
  sub_plan_ptr plan;
  caf::actor owner;
};

/// Limit of the checkpoints that are begun or reported, and not ended; beyond
/// it the oldest are given up.
inline constexpr std::size_t under_way_max = 4;

/// Makes a checkpoint of the job from its shards, all in the own store. On the
/// disk queue.
model::result<published>
publish_checkpoint(const job_world& world, std::uint64_t step,
                   std::span<const core::written_shard> shards);

caf::actor
spawn_checkpointer(caf::actor_system& system, checkpointer_config config);

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::begin_checkpoint)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::shards_told)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::checkpoint_written)
