// actors/reduction/reduction_context.hpp -- the environment of a reducer's
// parts.
//
// One per reducer; its parts (gradient_sums.hpp, step_losses.hpp,
// tied_gradients.hpp, gradient_copies.hpp) refer to it and know nothing else of
// the node. A test fills it by hand.
//
// Each part runs in its owner's turns: completions on other threads return by
// `post`. Each has a begin(step), after which it ignores all that belongs to
// the former step, and reports to its `events`.
//
// Threads: the owner's.
#pragma once

#include "actors/training/later.hpp"
#include "actors/training/link_names.hpp"
#include "actors/training/training_state.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <system_error>

namespace shoal::runtime {
class device_queue;
} // namespace shoal::runtime

namespace shoal::actors {

struct reduction_context {
  core::peer_id self{}; ///< this peer
  sub_plan_ptr plan;
  std::shared_ptr<const model::unit_layout> layout;
  std::map<model::unit_index, unit_ptr> states; ///< for this sub-plan
  core::part_set computed;                      ///< by this peer, in some
                                                ///< replica
  core::part_set followed;                      ///< in addition to those
  runtime::link_hub* links = nullptr;
  runtime::device_queue* device = nullptr; ///< arithmetic
  runtime::device_queue* sums = nullptr;   ///< sums of received data
  buffer_pool* buffers = nullptr;
  poster post; ///< to the owner

  const core::island_place& place() const { return plan->where; }
  const core::holdings& holds() const { return plan->holds; }
  model::unit_index head() const { return layout->head_unit(); }
  bool computes(model::unit_index u) const { return computed.contains(u); }
  /// Whether this peer computes the unit in replica 0.
  bool leads(model::unit_index u) const;
  /// The first replica in which this peer computes the unit. @pre computes(u)
  std::uint32_t first_replica(model::unit_index u) const;

  /// `post` for work and transfers for which the sub-plan's halt waits: it
  /// holds the lease. Not for a transfer that may begin after the halt has
  /// cancelled all of them.
  poster leased_post() const;

  transport::bulk_tag tag(link_kind kind, std::uint32_t replica,
                          std::uint32_t index, std::uint64_t step) const;
  /// The whole gradient of a unit, in place.
  runtime::shared_bytes gradient(model::unit_index u) const;

  /// Posts fresh memory for a transfer; `then` gets it in the owner's turn.
  void
  expect(const core::peer_id& from, transport::bulk_tag tag, std::size_t bytes,
         std::function<void(const buffer&, std::error_code)> then) const;
};

/// Fills in `computed` and `followed` from the other members.
/// @pre this peer computes or follows a unit
void find_units(reduction_context& here);

} // namespace shoal::actors
