// actors/training/link_names.hpp -- the names of a job's transfers.
//
// Both ends of a transfer compute its tag from the sub-plan and from what is
// sent; nothing is negotiated. A link is {kind, replica, index} packed into 32
// bits; the sequence distinguishes steps (and microbatches), and the plan
// digest in the tag distinguishes sub-plans.
#pragma once

#include "runtime/core/assert.hpp"
#include "transport/fabric.hpp"

#include <cstdint>

namespace shoal::actors {

enum class link_kind : std::uint8_t {
  tokens = 1,        ///< ids of a microbatch, data source -> first stage
  targets = 2,       ///< next ids of a microbatch, data source -> last stage
  activations = 3,   ///< hidden states, stage -> next stage
  gradients = 4,     ///< d hidden states, stage -> previous stage
  reduce_part = 5,   ///< a piece of a unit's gradient, replica -> owner
  reduce_result = 6, ///< its sum, owner -> the other replicas
  tied = 7,          ///< gradient of a tied tensor, first <-> last stage
  state = 8,         ///< parameters and moments of a unit -> a new holder
  snapshot = 9,      ///< the same -> checkpointer
  eval_tokens = 10,  ///< like tokens, targets, activations: in an evaluation
  eval_targets = 11,
  eval_activations = 12,
  eval_losses = 13,      ///< sums and counts, last stage -> evaluator
  losses = 14,           ///< of a replica's microbatches -> replica 0
  losses_merged = 15,    ///< of all microbatches, replica 0 -> the others
  gradient_copy = 16,    ///< of a unit, reduced, replica 0 -> its followers
  state_copy = 17,       ///< like state, along the same path
  arrival = 18,          ///< like state, but in pieces; `replica` is the
                         ///< piece's number; a replica -> the peer at which the
                         ///< unit arrives
  arrival_gradient = 19, ///< like gradient_copy, along the same path
  serve_hidden = 20,     ///< hidden states of a pass, stage -> next stage of a
                         ///< pipeline; `index` is the receiver
};

/// @param index a stage or a unit
inline transport::bulk_tag
make_tag(std::uint64_t plan_digest, link_kind kind, std::uint32_t replica,
         std::uint32_t index, std::uint64_t sequence) {
  SHOAL_ASSERT(replica < (1u << 10) && index < (1u << 16));
  return {plan_digest, (std::uint32_t(kind) << 26) | (replica << 16) | index,
          std::uint32_t(sequence)};
}

} // namespace shoal::actors
