// actors/checkpointer.hpp -- gathers a job's state and puts it into the store.
//
// One per job, on the member that the plan names. The first replica's peers
// copy their units and send the copies here; when all have come, the disk
// queue writes a Hugging Face directory with the optimizer's state and puts
// it into the store (checkpoint_files.hpp).
//
// Message            Effect
// begin_checkpoint   expects every unit
//
// To its owner: checkpoint_written.
// Errors: no disk, no space: told, and the run goes on without. The last
//         checkpoint of a run is kept in memory and tried again until it is
//         written: nothing else holds what was trained.
#pragma once

#include "actors/checkpoint_files.hpp"
#include "actors/stage.hpp"

namespace shoal::actors {

struct begin_checkpoint {
  std::uint64_t step = 0;
  bool last = false;
};
struct checkpoint_written {
  std::uint64_t digest = 0; ///< of the sub-plan that it was begun under
  std::uint64_t step = 0;
  bool good = false;
  published what;
  std::string why;     ///< not good
  bool trying = false; ///< not good yet: another message follows
};

struct checkpointer_config {
  world_ptr world;
  sub_plan_ptr plan;
  caf::actor owner;
};

caf::actor
spawn_checkpointer(caf::actor_system& system, checkpointer_config config);

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::begin_checkpoint)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::checkpoint_written)
