// runtime/core/planning/placement.hpp -- who has which role of a job's
// assignment, once its layout is found: pure functions of the view.
//
// Roles stay where they were while that member takes part. Keepers and sealers
// are chosen last: whoever may hold state or data of the job is a sealer.
#pragma once

#include "runtime/core/planning/layout.hpp"
#include "runtime/core/view.hpp"

#include <vector>

namespace shoal::core {

/// So many members keep a job's blobs, or one more than the copies that it
/// wants of its state, where there are so many.
inline constexpr std::size_t keepers_min = 2;

/// Whether a member of this state computes: it has a measured speed.
[[nodiscard]] bool usable(const member& m, member_state state);

/// Who gets work: active members, or, when all others are leaving too, those
/// that leave: somebody has to bring the jobs to their end.
[[nodiscard]] member_state working_state(const view& v);

/// Members that can work, less some so that no two that are left are cut from
/// each other: all who take part in a job talk to all others. Those go whose
/// capacity is least; work that they have in `previous` (may be null) counts a
/// tenth more.
[[nodiscard]] std::vector<const member*>
able_members(const view& v, const assignment* previous);

/// All that run a stage, ascending.
[[nodiscard]] std::vector<member_id>
workers(const std::vector<replica_place>& replicas);

/// Sets data source, evaluator, checkpointer and reporter.
void place_roles(assignment& a, const view& v, const peer_id& submitter,
                 const assignment* previous);

/// Those who kept the job's blobs and checkpoints before stay. One more than is
/// wanted takes no part in the job, if there is such a member when the layout
/// changes, on another host if there is one there: then no deaths among those
/// who hold its state in memory cost more than what its checkpoints lack.
void place_keepers(assignment& a, const view& v, const layout_problem& p,
                   const assignment* previous);

/// @pre all other places of `a` are set
void place_sealers(assignment& a, const view& v, const layout_problem& p,
                   const assignment* previous);

} // namespace shoal::core
