// runtime/core/planning/plan.hpp -- which member runs what: a pure function of
// the view.
//
// Every peer computes the plan for itself, in integers only, and gets the same
// bytes. The planner sees the previous assignment and keeps it where it can, so
// that a join does not reshuffle everything.
//
// A layout is kept while all its members are present and able, unless the best
// layout found is more than keep_percent faster, or comes closer to what the
// job wants (more replicas, or stages on members of their own; the stages of a
// served model on more members). Other members
// that hold the units of a lost member may stand in for it (detours.hpp): such
// a layout gives way to any faster one. Replicas may differ in their split into
// blocks and their number of stages: reduce by unit.
//
// Several jobs share each device by one ledger: they are planned one after
// another, each with the memory that the jobs before it have left. A member
// that also trains for another job counts with half its speed, or less; a served
// model reserves a share of its members (layout/cost.hpp).
//
// Each unit's state is in want_copies + 1 places: where fewer replicas hold it,
// members follow (followers.hpp), as far as the layouts of all jobs leave
// memory.
//
// Of two members that are cut from each other only one takes part in an island.
//
// The islands of a job are planned one by one, each on members of its own
// (island_members.hpp): what happens to one leaves the places of the others as
// they are. What computes where is decided by the placer of the job's kind
// (placer.hpp).
//
// Units: nanoseconds, bytes. Cost: well below 1 ms for 4 members, some 50 ms
// for 64, 0.6 s for 1,024 (tests/bench/plan_bench.cpp).
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/planning/layout/prediction.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::core {

struct job_entry; // runtime/core/job_entry.hpp
struct view;      // runtime/core/view.hpp

/// What runs where in one view.
struct plan {
  epoch number = 0;
  std::vector<assignment> jobs; ///< of the running jobs, by job id
};

/// A new layout must be faster by this to replace one that works.
inline constexpr std::uint64_t keep_percent = 10;

[[nodiscard]] plan make_plan(const view& v);

/// Why a job cannot run on the present members even with all their memory to
/// itself, in numbers; empty if it can run, or if no member can work yet.
[[nodiscard]] std::string never_fits(const view& v, const job_entry& job);

/// Whether a served model can have one more pipeline, while all jobs go on where
/// they run in `now`, the plan of `v`.
[[nodiscard]] bool
has_room_for_more(const view& v, const plan& now, const job_entry& job);

/// Whether all participants of `a`, made in an earlier view, still can take
/// part: they are members as before, and none is cut from another.
[[nodiscard]] bool undisturbed(const view& v, const island_place& a);

/// "1f1b, replica 0: a layers 0-3, b layers 4-7; replica 1: ...": how and where
/// a job runs, which wishes of its run file are not met, which members are
/// idle, and why (plan_reasons.hpp).
[[nodiscard]] std::string to_text(const view& v, const assignment& a);
/// The same of one island.
[[nodiscard]] std::string
to_text(const view& v, const island_id& id, const island_place& a);

[[nodiscard]] prediction
predict(const view& v, job_id job, const island_place& a);

/// The longest predicted time in which no activity of the island need end on any
/// peer: a step, or the transfer of all its state over the slowest link.
[[nodiscard]] nanoseconds
longest_wait(const view& v, job_id job, const island_place& a);

} // namespace shoal::core
