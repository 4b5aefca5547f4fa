// runtime/core/planning/island_members.hpp -- which members make up the islands
// of a job.
//
// Each member that can work belongs to exactly one island of a job. A member
// with work or state stays in its island for as long as the job runs: state does not
// move between islands. Another member goes to the island with the least speed; of
// a served model, first to those with fewer members than the stages that it wants.
//
// Units: MFLOP/s. Cost: members x islands.
#pragma once

#include "runtime/core/assignment.hpp"

#include <cstdint>
#include <vector>

namespace shoal::core {

struct job_entry; // runtime/core/job_entry.hpp
struct member;    // runtime/core/view.hpp
struct view;      // runtime/core/view.hpp

using member_list = std::vector<const member*>;

/// The members of each island that can work, by id. Of two members of an island
/// that are cut from each other only one is listed (able_members).
/// @param previous where the job ran; or null
[[nodiscard]] std::vector<member_list>
members_by_island(const view& v, const job_entry& job,
                  const assignment* previous);

/// The place that island `index` had in `previous`, which may be null; or null.
[[nodiscard]] const island_place*
island_of(const assignment* previous, std::uint32_t index);

} // namespace shoal::core
