// actors/training/stage.hpp -- computes the stages of this peer.
//
// Lives as long as its sub-plan. The stages belong to one replica, or to
// several where this peer stands in for others (detours.hpp in the core). Runs
// the items of the schedule one by one (runtime/core/schedule/schedule.hpp): an
// item runs on the device queue when its input has arrived; its output goes to
// the neighbour. Neighbours are known only as links, even if they are stages of
// this same peer.
//
// Message        Effect
// begin_step     zeroes the gradients, then one training step
// begin_eval     one evaluation: forward only
// arrived        input of a microbatch is here
// item_done      the device has run an item
//
// To its owner (the job actor): step_computed, eval_computed. To the reducer:
// unit_ready, while other units are still computed; losses_computed.
//
// Errors: after a failed transfer the stage just waits: the peer is lost, so
// another sub-plan follows, and this actor ends with the old one.
#pragma once

#include "actors/training/training_state.hpp"

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>

#include <cstdint>
#include <map>
#include <vector>

namespace shoal::actors {

struct begin_step {
  std::uint64_t step = 0;
};
struct begin_eval {
  std::uint64_t step = 0;
};
/// Result of a step for one microbatch.
struct microbatch_loss {
  double loss = 0;          ///< mean, in nats per token
  std::uint64_t sample = 0; ///< digest of its targets (ledger.hpp in the core)
};
/// All stages of this peer have run their part of a step.
struct step_computed {
  std::uint64_t step = 0;
  core::nanoseconds busy = 0;    ///< of the device, with items of the schedule
  core::nanoseconds elapsed = 0; ///< from begin_step to the last item
};
/// The same, where the last stage of a replica is here.
struct losses_computed {
  std::uint64_t step = 0;
  /// Of the microbatches with their last stage here.
  std::map<std::uint32_t, microbatch_loss> losses;
};
/// All stages of this peer have run their part of an evaluation.
struct eval_computed {
  std::uint64_t step = 0;
};
/// This peer's contribution to the gradients of a unit is complete.
struct unit_ready {
  std::uint64_t step = 0;
  model::unit_index unit = 0;
};

struct stage_config {
  world_ptr world;
  sub_plan_ptr plan;
  caf::actor owner;
  caf::actor reducer;
};

/// @pre this peer runs at least one stage
caf::actor spawn_stage(caf::actor_system& system, stage_config config);

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::begin_step)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::begin_eval)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::step_computed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::losses_computed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::eval_computed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::unit_ready)
