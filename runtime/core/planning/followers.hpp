// runtime/core/planning/followers.hpp -- members that keep copies of a job's
// state.
//
// Where fewer members than want_copies + 1 compute a unit, others follow it.
// The units of one stage go together. Among members with enough free memory the
// preferred follower is on another host, holds the units already, and has
// little state of its own: so copies spread, survive the loss of a host, and
// rarely move. Copies use only memory that no layout needs: followers never
// change a layout, and a unit for which there is no room has fewer copies.
//
// Every step costs a follower the transfer of its units' gradients and one more
// run of the optimizer. Where that is predicted to be more than a fiftieth of
// the step (copy_cost_permille), whole copies are taken every `copy_every`
// steps instead, if memory allows; copy_every is chosen so that they cost no
// more than that either.
//
// Units: bytes. Cost: stages x copies x members.
#pragma once

#include "runtime/core/planning/layout/cost.hpp"

#include <map>

namespace shoal::core {

/// A member that is slower than an owner by more than this factor follows it
/// only if no other member can: every step waits for its followers.
inline constexpr std::uint64_t follower_slower_max = 8;

/// Share of a step that copies may cost, in thousandths.
inline constexpr std::uint64_t copy_cost_permille = 20;

/// Sets a.followers and a.copy_every. @pre a.replicas are placed on p.members
void place_followers(island_place& a, const layout_problem& p);

/// Whether the replicas, copies and arrivals of `a` fit in p.memory.
[[nodiscard]] bool fits_memory(const island_place& a, const layout_problem& p);

/// Memory of each member that copies and arrivals take, besides the layout.
[[nodiscard]] std::map<member_id, std::uint64_t>
copy_bytes(const job_entry& job, const island_place& a);

} // namespace shoal::core
