// runtime/core/planning/layout/layout_split.hpp -- splits blocks into the stages of
// one replica, and microbatches between replicas.
//
// The best split is known exactly except for one number. Given the longest time
// T that a member may take, blocks go to the fastest members that have room
// below T and in memory, since that makes the fill shortest. T is tried upwards
// from the least possible value.
//
// Units: nanoseconds. Cost: members x 10, or x 100 with `exact`.
#pragma once

#include "runtime/core/planning/layout/cost.hpp"

namespace shoal::core {

/// A replica with its time; no stages if it does not fit.
struct split_replica {
  cost_model::replica place;
  cost_model::pipeline_time time;
};

/// Splits the model over `group`, in stage order, into `stages` stages (0: one
/// for each member). With fewer members than stages, faster members have more
/// of them. `exact` tries every T. @pre model.use() was called
[[nodiscard]] split_replica
split_blocks(const cost_model& model, std::span<const cost_model::index> group,
             std::uint32_t stages, std::uint32_t microbatches, bool exact);

/// Shares with which the slowest replica ends earliest; each gets at least one.
/// @pre at least as many microbatches as replicas
[[nodiscard]] std::vector<std::uint32_t>
share_out(std::span<const cost_model::pipeline_time> times,
          std::uint32_t microbatches);

} // namespace shoal::core
