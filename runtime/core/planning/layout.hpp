// runtime/core/planning/layout.hpp -- the search for a job's layout.
//
// A layout = which members form replicas, in which order, how the blocks are
// split among them and how many microbatches each replica takes. Replicas may
// have unlike numbers of members. With try_all_members_max members or fewer,
// every grouping is tried; else groupings are made in some ways from members
// in order of speed, place and memory, for the shapes that promise most, and
// the best few are improved by moving members while that helps.
//
// What the job wants is kept: so many replicas, or fewer only where they do
// not fit, or where members lack and fewer are faster; so many stages, of which
// a member runs several only where members with room for one lack.
//
// Units: nanoseconds, bytes; integers only; the same everywhere.
// Cost:  work_per_member bounds it (tests/bench/plan_bench.cpp).
#pragma once

#include "runtime/core/planning/cost.hpp"

#include <vector>

namespace shoal::core {

struct prediction;

/// Up to so many members every grouping is tried.
inline constexpr std::size_t try_all_members_max = 4;
/// Pieces of work (some 20 ns) that a search may take, and for each member.
inline constexpr std::uint64_t work_base = 100'000;
inline constexpr std::uint64_t work_per_member = 10'000;
/// No layout has more; the wire has the same limits.
inline constexpr std::size_t layout_stages_max = 1024;
inline constexpr std::size_t layout_replicas_max = 1024;

struct layout {
  std::vector<replica_place> replicas; ///< empty: none fits
  layout_score score;
};

/// Stages that the job wants of each replica, as far as it has blocks for them;
/// 0: any number.
[[nodiscard]] std::uint32_t wanted_stages(const job_entry& job);

/// Whether each replica has as many members as the job wants stages.
[[nodiscard]] bool
stages_apart(const job_entry& job, const std::vector<replica_place>& replicas);

/// The best layout that the search finds, respecting what the job wants.
[[nodiscard]] layout find_layout(const layout_problem& p);

/// Time of a step and memory by member, of replicas as placed.
[[nodiscard]] prediction
predict_replicas(const job_entry& job,
                 const std::vector<const member*>& members,
                 const std::vector<replica_place>& replicas);

} // namespace shoal::core
