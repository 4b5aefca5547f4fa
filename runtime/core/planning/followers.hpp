// runtime/core/planning/followers.hpp -- who keeps copies of a job's state.
//
// Where fewer members than want_copies + 1 compute a unit, others follow it.
// The units of one stage go together. Of those that have the memory left the
// follower is one on another host, that holds the units already, with little
// state of its own: so copies spread, survive their host and rarely move.
// Memory that no layout needs is used: followers never change a layout, and a
// unit for which there is no room has fewer copies.
//
// Every step costs a follower the transfer of its units' gradients and the
// optimizer once more. Where that is predicted to be more than a fiftieth of
// the step, whole copies are taken every so manieth step instead, if memory
// allows; as rarely as they too cost no more.
//
// Units: bytes. Cost: stages x copies x members.
#pragma once

#include "runtime/core/planning/cost.hpp"

#include <map>

namespace shoal::core {

/// A member at less than this part of an owner's speed follows it only if
/// nobody else can: every step waits for its followers.
inline constexpr std::uint64_t follower_slower_max = 8;

/// So much of a step may copies cost, in thousandths.
inline constexpr std::uint64_t copy_cost_permille = 20;

/// Sets a.followers and a.copy_every. @pre a.replicas are placed on p.members
void place_followers(assignment& a, const layout_problem& p);

/// Of memory, with gradients and optimizer state.
[[nodiscard]] std::uint64_t
bytes_of_units(const job_entry& job, std::uint32_t first_unit,
               std::uint32_t last_unit);

/// Whether the replicas, copies and arrivals of `a` fit in p.memory.
[[nodiscard]] bool fits_memory(const assignment& a, const layout_problem& p);

/// What copies, and what arrives, take of members' memory beside the layout.
[[nodiscard]] std::map<member_id, std::uint64_t>
copy_bytes(const job_entry& job, const assignment& a);

/// The fewest peers that hold a unit: one more than can be lost at once.
[[nodiscard]] std::uint32_t
holders_min(const assignment& a, std::uint32_t blocks);

} // namespace shoal::core
