// runtime/core/planning/layout/layout.hpp -- the search for a job's layout.
//
// A layout says which members form replicas, in which order, how the blocks are
// split among them, and how many microbatches each replica takes. Replicas may
// differ in their number of members. With at most try_all_members_max members
// every grouping is tried. Otherwise groupings are made in several ways from
// members ordered by speed, place and memory, for the most promising shapes,
// and the best few are improved by moving members while that helps.
//
// The job's wishes are kept. It gets the number of replicas that it wants;
// fewer only if they do not fit, or if there are too few members and fewer
// replicas are faster. It gets the number of stages that it wants; a member
// runs several of them only if there are too few members with room for one.
//
// Units: nanoseconds, bytes; integers only; the same on all peers.
// Cost:  bounded by work_per_member (tests/bench/plan_bench.cpp).
#pragma once

#include "runtime/core/planning/layout/cost.hpp"
#include "runtime/core/planning/layout/prediction.hpp"

#include <vector>

namespace shoal::core {

/// Up to this number of members every grouping is tried.
inline constexpr std::size_t try_all_members_max = 4;
/// Limit of the work of one search, in pieces of some 20 ns: a base, and an
/// amount for each member.
inline constexpr std::uint64_t work_base = 100'000;
inline constexpr std::uint64_t work_per_member = 10'000;
/// Upper limit of a layout's stages; the wire has the same limit.
inline constexpr std::size_t layout_stages_max = 1024;
inline constexpr std::size_t layout_replicas_max = 1024;

struct layout {
  std::vector<replica_place> replicas; ///< empty: none fits
  layout_score score;
};

/// Stages that the job wants of each replica, at most one per block; 0: any
/// number.
[[nodiscard]] std::uint32_t wanted_stages(const job_entry& job);

/// Whether each replica has at least one member for each stage that the job
/// wants.
[[nodiscard]] bool
stages_apart(const job_entry& job, const std::vector<replica_place>& replicas);

/// The best layout that the search finds, respecting what the job wants.
[[nodiscard]] layout find_layout(const layout_problem& p);

/// The same, with the wanted stages on as many members as have room: fewer members
/// than stages share these, even where one member alone would be faster.
[[nodiscard]] layout find_spread_layout(const layout_problem& p);

/// Time of a step and memory by member, of replicas as placed.
[[nodiscard]] prediction
predict_replicas(const job_entry& job,
                 const std::vector<const member*>& members,
                 const std::vector<replica_place>& replicas);

} // namespace shoal::core
