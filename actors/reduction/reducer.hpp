// actors/reduction/reducer.hpp -- sums gradients between replicas, behind the
// backward.
//
// One per peer and sub-plan. The actor only routes; its parts do the work:
//
//   gradient_sums    sums a unit with the other replicas as soon as its
//                    gradient is complete here; sums its squares once it is
//                    final
//   tied_gradients   with tied embeddings the first and the last stage exchange
//                    gradients, and both add them
//   gradient_copies  sends final gradients to peers that follow a unit
//                    (followers.hpp in the core), or at which it arrives
//   step_losses      replica 0 gathers all replicas' losses
//
// A peer that stands in for others (detours.hpp in the core) is in several
// replicas, but exchanges each gradient once: for the first of them.
//
// Message          Effect
// begin_step       posts memory for what will arrive, drops the former step
// unit_ready       this peer's part of a unit is complete
// losses_computed  losses of this peer's replicas
// send_gradients   a unit arrives at another peer from the next step on: that
//                  peer gets copies of the final gradients, so that no step
//                  waits
//
// To its owner: step_reduced, once per step, when all is reduced and no part of
// it is being sent any more.
//
// Traffic: of G bytes of gradients a peer sends and receives
//          2 G (R - 1) / R, and replica 0 sends G for each copy, and for units
//          that arrive elsewhere.
// Errors:  as in stage.hpp.
#pragma once

#include "actors/training/stage.hpp"

namespace shoal::actors {

/// All units of this peer are reduced, and the gradients of followed units are
/// here.
struct step_reduced {
  std::uint64_t step = 0;
  std::vector<microbatch_loss> losses;    ///< of all microbatches, if this peer
                                          ///< has the head
  std::vector<core::unit_square> squares; ///< of all units here
};

/// Send final gradients of a unit of ours to a peer, until the number that waits
/// shows that the peer cannot keep up.
struct send_gradients {
  model::unit_index unit = 0;
  core::peer_id to{};
};

struct reducer_config {
  world_ptr world;
  sub_plan_ptr plan;
  caf::actor owner;
};

/// @pre this peer runs or follows a stage of the plan
caf::actor spawn_reducer(caf::actor_system& system, reducer_config config);

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::step_reduced)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::send_gradients)
