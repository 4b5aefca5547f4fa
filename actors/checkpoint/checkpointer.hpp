// actors/checkpoint/checkpointer.hpp -- makes a checkpoint of what the writers have
// written.
//
// One on each peer that takes part in a job; of each checkpoint one of them is
// the publisher (core: publisher_of). When every unit's shard has been told
// (runtime/core/training/shards.hpp) it fetches those that its own store lacks
// straight from their writers; then the disk queue writes indexes, small files
// and, last of all, the manifest (checkpoint_files.hpp). A checkpoint that
// exists is therefore complete in one store. The run goes on meanwhile; a few
// checkpoints may be under way.
//
// Message            Effect
// begin_checkpoint   a checkpoint of this step is wanted
// shards_told        a writer's word (core::shards_written)
//
// To its owner: checkpoint_written.
// Errors: no disk, no space, here or at a writer: told, and the run goes on
//         without; from here on another publishes, if the own disk refuses.
//         The last checkpoint of a run is tried until it is written, or all
//         begin anew so that others write it.
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
  std::vector<core::peer_id> unable; ///< to write; others do
};
struct shards_told {
  core::peer_id from{};
  core::shards_written what;
};
struct checkpoint_written {
  std::uint64_t digest = 0; ///< of the sub-plan that it was begun under
  std::uint64_t step = 0;
  bool good = false;
  published what;
  std::string why;     ///< not good
  bool trying = false; ///< not good yet: another message follows
  core::peer_id at{};  ///< not good: who could not; zero: nobody in particular
};

struct checkpointer_config {
  world_ptr world;
  sub_plan_ptr plan;
  caf::actor owner;
};

/// Checkpoints that are begun or told of, and not ended; of more the oldest
/// are given up.
inline constexpr std::size_t under_way_max = 4;

caf::actor
spawn_checkpointer(caf::actor_system& system, checkpointer_config config);

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::begin_checkpoint)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::shards_told)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::checkpoint_written)
