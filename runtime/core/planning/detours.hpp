// runtime/core/planning/detours.hpp -- a replica that has lost a stage goes on.
//
// Who else holds the units of a dead stage, computing or following them, runs
// its microbatches too, until the new plan has moved the state: the replica
// makes a detour. Nothing has to move for it, so it begins at once. Where
// several members hold the units they share the microbatches: the replica then
// becomes several, with the same members but for the dead stage's place.
//
// A detour is an assignment like any other, but that a member may run the same
// units in several replicas: with one copy of their state and one gradient, to
// which it adds in a fixed order (schedule.hpp, S-5). It lasts until the state
// of a layout that is faster has arrived (arrivals.hpp). One that just drops
// the replica leaves as much to do for the others; whose members on a detour
// keep their state until there is a full replica again. Where the job wants so
// many replicas it must be faster by fragile_percent.
//
// Microbatches are dealt out anew to all replicas, each to the one whose
// busiest member has least to do: those beside the dead stage get less, so
// that the stand-ins have time.
//
// Units:  nanoseconds. Cost: deals_max x stages of all replicas.
// Source: S. Gandhi et al.: ReCycle: Resilient Training of Large DNNs using
// Pipeline Adaptation, SOSP 2024 (microbatches of a failed worker to its peers
// of other pipelines, in their bubbles, with W deferred).
#pragma once

#include "runtime/core/planning/cost.hpp"

namespace shoal::core {

/// So much faster must a layout be to replace a detour (per cent): more than
/// the search errs, less than one replica of 32.
inline constexpr std::uint64_t detour_keep_percent = 3;

/// A detour has so many replicas at most, or as many as there were: each loss
/// makes several of one, views and tags have limits, and more ways around what
/// is missing gain little.
inline constexpr std::size_t detour_replicas_max = 256;

/// Microbatches are dealt out in so many portions at most.
inline constexpr std::uint32_t deals_max = 1024;

/// Whether each replica has all blocks, and they have all microbatches.
[[nodiscard]] bool
runs_all(const job_entry& job, const std::vector<replica_place>& replicas);

/// Whether `a` can be planned from: its numbers are in range and in order, and
/// what arrives does so beside replicas that run. A view may hold any.
[[nodiscard]] bool is_sound(const job_entry& job, const assignment& a);

/// p.previous with every member that is gone replaced by such that hold its
/// units; the previous replicas themselves, if nobody is. @returns nothing if
/// some unit is held by nobody, or they were no layout of the job
[[nodiscard]] std::vector<replica_place> detour(const layout_problem& p);

/// Whether some member runs a unit in two replicas.
[[nodiscard]] bool makes_detour(const std::vector<replica_place>& replicas);

/// Replicas, but those that share a member counted as one: the most members
/// that compute one and the same unit.
[[nodiscard]] std::uint32_t
replica_count(const std::vector<replica_place>& replicas);

} // namespace shoal::core
