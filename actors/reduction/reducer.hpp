// actors/reduction/reducer.hpp -- sums gradients between replicas, behind the backward.
//
// One per peer and sub-plan. The actor only routes; its parts do the work:
//
//   gradient_sums    a unit is summed with the other replicas' as soon as its
//                    gradient is complete here; once final, its squares
//   tied_gradients   with tied embeddings the first and the last stage exchange
//                    gradients, and both add them
//   gradient_copies  final gradients go to peers that follow a unit
//                    (followers.hpp in the core), or at which it arrives
//   step_losses      replica 0 gathers all replicas' losses
//
// A peer that stands in for others (detours.hpp in the core) is in several
// replicas, but exchanges each thing once: by the first of them.
//
// Message          Effect
// begin_step       posts what will come, forgets the step before
// unit_ready       this peer's part of a unit is complete
// losses_computed  losses of this peer's replicas
// send_gradients   a unit arrives at another peer from the next step on: it
//                  gets the final gradients, copied, so that no step waits
//
// To its owner: step_reduced, once per step, when all is reduced and nothing
// of it is being sent any more.
//
// Traffic: of G bytes of gradients a peer sends and receives
//          2 G (R - 1) / R, and replica 0 sends G for each copy, and for what
//          arrives elsewhere.
// Errors:  as in stage.hpp.
#pragma once

#include "actors/training/stage.hpp"

namespace shoal::actors {

/// All units of this peer are reduced, and those that it follows are here.
struct step_reduced {
  std::uint64_t step = 0;
  std::vector<microbatch_loss> losses;  ///< of all, if we have the head
  std::vector<core::unit_sums> squares; ///< of all of them, by unit
};

/// Final gradients of a unit of ours go to a peer, until so many wait to be
/// sent that it cannot keep up.
struct send_gradients {
  model::unit_index unit = 0;
  core::peer_id to{};
};

struct reducer_config {
  world_ptr world;
  sub_plan_ptr plan;
  caf::actor owner;
};

/// @pre this peer runs a stage of the plan or follows one
caf::actor spawn_reducer(caf::actor_system& system, reducer_config config);

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::step_reduced)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::send_gradients)
