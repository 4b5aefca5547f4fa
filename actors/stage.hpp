// actors/stage.hpp -- consecutive units of one replica, computing.
//
// Lives as long as its sub-plan. Follows the schedule item by item: an item
// runs on the device queue as soon as its input has arrived; what it makes
// goes to the neighbour. A stage knows its neighbours only as links.
//
// Message        Effect
// begin_step     zeroes the gradients, then one training step
// begin_eval     one evaluation: forward only
// arrived        input of a microbatch is here
// item_done      the device has run an item
//
// To its owner (the job actor): step_computed, eval_computed. To the reducer:
// unit_ready, while later units are still computed.
//
// Errors: a transfer that fails is waited out: the peer is lost, so another
// sub-plan follows, and this actor ends with the old one.
#pragma once

#include "actors/training_state.hpp"

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>

#include <cstdint>
#include <vector>

namespace shoal::actors {

struct begin_step {
  std::uint64_t step = 0;
};
struct begin_eval {
  std::uint64_t step = 0;
};
/// A stage has run its part of a step.
struct step_computed {
  std::uint64_t step = 0;
  stage_name stage;
  /// Mean losses of this replica's microbatches, [first, last), in nats per
  /// token; only from the last stage.
  std::vector<double> losses;
};
/// A stage has run its part of an evaluation.
struct eval_computed {
  std::uint64_t step = 0;
  stage_name stage;
};
/// The gradients of a unit of this replica are complete.
struct unit_ready {
  std::uint64_t step = 0;
  model::unit_index unit = 0;
};

struct stage_config {
  world_ptr world;
  sub_plan_ptr plan;
  stage_name name;
  caf::actor owner;
  caf::actor reducer;
};

caf::actor spawn_stage(caf::actor_system& system, stage_config config);

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::begin_step)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::begin_eval)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::step_computed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::eval_computed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::unit_ready)
