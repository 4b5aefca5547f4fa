// runtime/core/training/layout.hpp -- the search for a job's layout, and its
// cost model.
//
// Cost of a step = the slowest replica + the reduction between replicas. A
// replica takes the sum of its stages' times (fill and drain of the pipeline)
// and, for each further microbatch, the time of its slowest member. Members on
// one host share its cores: each counts with its speed divided by how many of
// them the job uses.
//
// Units: nanoseconds, bytes; integers only.
#pragma once

#include "runtime/core/view.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace shoal::core {

struct prediction;

/// Assumed of the network until links are measured: 1 GB/s, 100 us.
inline constexpr std::uint64_t assumed_bytes_per_s = 1'000'000'000;
inline constexpr nanoseconds assumed_hop = 100'000;
/// Bytes moved by a change of layout must pay off within so many steps.
inline constexpr std::uint64_t repay_steps = 100;
/// A layout that one death would end counts as so much slower (per cent).
inline constexpr std::uint64_t fragile_percent = 25;
/// Up to so many members every order is tried.
inline constexpr std::size_t try_all_members_max = 4;

/// Up to so many, pairs are swapped in two passes, above that in one.
inline constexpr std::size_t climb_twice_max = 8;

/// What the search works on.
struct layout_problem {
  const job_entry& job;
  std::vector<const member*> members;      ///< usable, by id
  std::map<peer_id, std::uint64_t> memory; ///< left by other jobs
  const assignment* previous = nullptr;    ///< or nullptr
};

/// Lower is better; a tie goes to fewer bytes moved, then more members.
struct layout_score {
  std::uint64_t cost = 0; ///< ns, with the charges above
  std::uint64_t moved_bytes = 0;
  std::uint64_t unused_members = 0;
  friend auto operator<=>(const layout_score&, const layout_score&) = default;
};

/// Score of replicas as placed; nothing if they do not fit in memory.
[[nodiscard]] std::optional<layout_score>
score(const layout_problem& p, const std::vector<replica_place>& replicas);

struct layout {
  std::vector<replica_place> replicas; ///< empty: none fits
  layout_score score;
};

/// The best layout that the search finds, respecting what the job wants.
[[nodiscard]] layout find_layout(const layout_problem& p);

/// Time of a step and memory by member, of replicas as placed.
[[nodiscard]] prediction
predict_replicas(const job_entry& job,
                 const std::vector<const member*>& members,
                 const std::vector<replica_place>& replicas);

} // namespace shoal::core
