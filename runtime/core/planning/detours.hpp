// runtime/core/planning/detours.hpp -- a replica that lost a stage goes on.
//
// Members that also hold the units of a dead stage, by computing or following
// them, run its microbatches too, until the new plan has moved the state: the
// replica makes a detour. No state has to move for that, so it begins at once.
// Where several members hold the units they share the microbatches: the replica
// then becomes several, with the same members except in the place of the dead
// stage.
//
// A detour is an assignment like any other, except that a member may run the
// same units in several replicas: with one copy of their state and one
// gradient, to which it adds in a fixed order (schedule.hpp, S-5). It lasts
// until the state of a faster layout has arrived (arrivals.hpp). A layout that
// just drops the replica leaves the others the same amount of work, while the
// members on a detour keep their state until there is a full replica again. So
// where the job wants the present number of replicas, a layout with fewer must
// be faster by fragile_percent.
//
// Microbatches are dealt out anew to all replicas, each to the replica whose
// busiest member has least to do. Replicas beside the dead stage get fewer, so
// that the stand-ins have time.
//
// Units:  nanoseconds. Cost: deals_max x stages of all replicas.
// Source: S. Gandhi et al.: ReCycle: Resilient Training of Large DNNs using
// Pipeline Adaptation, SOSP 2024 (microbatches of a failed worker to its peers
// of other pipelines, in their bubbles, with W deferred).
#pragma once

#include "runtime/core/planning/layout/cost.hpp"

namespace shoal::core {

/// A layout must be faster by this to replace a detour (per cent): more than
/// the error of the search, less than one replica of 32.
inline constexpr std::uint64_t detour_keep_percent = 3;

/// Upper limit of the replicas of a detour, unless there were more before: each
/// lost member can turn one replica into several, views and tags have limits,
/// and more ways around the gap gain little.
inline constexpr std::size_t detour_replicas_max = 256;

/// Upper limit of the portions in which microbatches are dealt out.
inline constexpr std::uint32_t deals_max = 1024;

/// Whether each replica has all blocks, and together they have all
/// microbatches.
[[nodiscard]] bool
runs_all(const job_entry& job, const std::vector<replica_place>& replicas);

/// Whether a plan can be made from `a`: its numbers are in range and in order,
/// and units arrive only beside replicas that run. A view may hold any
/// assignment.
[[nodiscard]] bool is_sound(const job_entry& job, const island_place& a);
/// Whether that holds for each island, and they are as many as the job wants.
[[nodiscard]] bool is_sound(const job_entry& job, const assignment& a);

/// p.previous with every member that is gone replaced by members that hold its
/// units; the previous replicas themselves if no member is gone.
/// @returns nothing if no member holds some unit, or the replicas were no
/// layout of the job
[[nodiscard]] std::vector<replica_place> detour(const layout_problem& p);

/// Whether some member runs a unit in two replicas.
[[nodiscard]] bool makes_detour(const std::vector<replica_place>& replicas);

/// Replicas, counting those that share a member as one: the largest number of
/// members that compute the same unit.
[[nodiscard]] std::uint32_t
replica_count(const std::vector<replica_place>& replicas);

} // namespace shoal::core
