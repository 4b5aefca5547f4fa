// runtime/core/planning/placement.hpp -- the roles of an island, given its
// layout: pure functions of the view.
//
// A role stays with its member while that member takes part. Keepers and
// sealers are chosen last: every member that may hold state or data of the island
// is a sealer.
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/planning/layout/layout.hpp"

#include <vector>

namespace shoal::core {

struct member; // runtime/core/view.hpp
struct view;   // runtime/core/view.hpp
enum class member_state : std::uint8_t;

/// Number of members that keep a job's blobs, if there are enough members: at
/// least this, or one more than the copies of its state that the job wants.
inline constexpr std::size_t keepers_min = 2;

/// Whether a member in this state can compute: its speed has been measured.
[[nodiscard]] bool usable(const member& m, member_state state);

/// The state of the members that get work: active; or leaving, when all others
/// are leaving too, since some member has to bring the jobs to their end.
[[nodiscard]] member_state working_state(const view& v);

/// Removes members so that no two of the rest are cut from each other: all
/// participants of an island talk to all others. The members with least capacity
/// are left out; work that a member has in `previous` (may be null) counts a
/// tenth more.
void leave_out_cut(const view& v, const island_place* previous,
                   std::vector<const member*>& members);

/// All members that run a stage, ascending.
[[nodiscard]] std::vector<member_id>
workers(const std::vector<replica_place>& replicas);

/// Sets data source, evaluator, checkpointer and reporter.
void place_roles(island_place& a, const view& v, const peer_id& submitter,
                 const island_place* previous);

/// Chooses the keepers of the job's blobs and checkpoints; the former ones
/// stay. None of a served model: its files are spread without the plan
/// (file_keepers.hpp). When the layout changes, one keeper more than wanted is a member that
/// takes no part in the job, if there is one, preferably on another host: then
/// no deaths among the members that hold the state in memory cost more than the
/// steps since the last checkpoint.
void place_keepers(island_place& a, const view& v, const layout_problem& p,
                   const island_place* previous);

/// Chooses the members that share the parts of checkpoints, if the job wants
/// that, and if there are more of them than keepers. The former ones stay.
/// @pre the keepers are placed
void place_part_keepers(island_place& a, const view& v, const layout_problem& p,
                        const island_place* previous);

/// @pre all other places of `a` are set
void place_sealers(island_place& a, const view& v, const layout_problem& p,
                   const island_place* previous);

} // namespace shoal::core
