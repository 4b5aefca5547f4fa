// actors/training/evaluator.hpp -- adds up the held-out loss of one evaluation.
//
// One per job, on the member that the plan names. The last stage of the first
// replica sends the loss sums of its microbatches; they are added in order.
//
// Message        Effect
// begin_eval     expects the sums
//
// To its owner: eval_summed. Errors: as in stage.hpp.
#pragma once

#include "actors/training/stage.hpp"

namespace shoal::actors {

struct eval_summed {
  std::uint64_t step = 0;
  double loss = 0;          ///< nats per predicted token
  std::uint64_t tokens = 0; ///< 0: no text is held out
};

struct evaluator_config {
  world_ptr world;
  sub_plan_ptr plan;
  caf::actor owner;
};

caf::actor spawn_evaluator(caf::actor_system& system, evaluator_config config);

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::eval_summed)
