// actors/checkpoint/shard_writer.hpp -- writes this peer's shards of a
// checkpoint.
//
// One per sub-plan on each peer with stages or followed units. The job actor
// has copied the units (shard_snapshot); here they go to the store one by one,
// on the disk queue, while the run goes on. Units do not change after the last
// checkpoint has begun: each is copied when its turn has come. Then the writer
// reports the names to the checkpoint's publisher, again and again until that
// has announced the outcome of the step.
//
// Message           Effect
// write_shards      writes a snapshot, then releases it
// refuse_shards     there is no snapshot of this step: tells the publisher why
// checkpoint_over   the publisher has announced the outcome of a step
//
// Errors: no disk, no space: reported to the publisher, and the snapshot is
//         released. The last one is kept and tried again until it is written:
//         nothing else holds the result of the training.
// Memory: 12 bytes for each parameter that is written; for the last
//         checkpoint, 12 for each parameter of the largest unit.
#pragma once

#include "actors/training/training_state.hpp"

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>

#include <utility>
#include <vector>

namespace shoal::actors {

/// Units to write.
struct shard_snapshot {
  struct part {
    unit_ptr from;
    buffer copy; ///< as made by copy_state_out(); none: the writer makes it
  };
  std::vector<part> units;
};

struct write_shards {
  std::uint64_t step = 0;
  bool last = false;
  std::shared_ptr<shard_snapshot> what; ///< may have no units
  core::peer_id publisher{};            ///< gets the report
};
struct refuse_shards {
  std::uint64_t step = 0;
  std::string why;
  core::peer_id publisher{};
};
struct checkpoint_over {
  std::uint64_t step = 0;
};

struct shard_writer_config {
  world_ptr world;
  sub_plan_ptr plan;
};

caf::actor
spawn_shard_writer(caf::actor_system& system, shard_writer_config config);

/// The writer of each unit under a sub-plan, the same on all peers. `unable` as
/// in core::shard_writers().
std::vector<core::peer_id>
writers_of(const core::island_place& place, const model::unit_layout& layout,
           const std::vector<core::peer_id>& unable = {});

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::write_shards)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::refuse_shards)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::checkpoint_over)
