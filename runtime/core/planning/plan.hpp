// runtime/core/planning/plan.hpp -- who runs what: a pure function of the view.
//
// Every peer computes the plan for itself, in integers only, and gets the
// same bytes. It sees the previous assignment and keeps it where it can, so
// that a join does not reshuffle everything.
//
// A layout is kept while all its members are there and able, unless the best
// one found is more than keep_percent faster, or comes closer to what the job
// wants (more replicas, or stages on members of their own). For members that
// are lost others that hold their units may stand in (detours.hpp):
// such a layout gives way to any that is faster. Splits into blocks
// and numbers of stages may differ between replicas: reduce by unit.
//
// Several jobs share each device by one ledger: they are planned one after
// another, each with the memory that those before have left. A member that
// also works for another job counts with half its speed, or less.
//
// Each unit's state is in want_copies + 1 places: where fewer replicas hold it,
// members follow (followers.hpp), as far as all jobs' layouts leave
// memory.
//
// Of two members that are cut from each other one takes no part in a job.
//
// Units: nanoseconds, bytes. Cost: well below 1 ms for 4 members, some 50 ms
// for 64, 0.6 s for 1,024 (tests/bench/plan_bench.cpp).
#pragma once

#include "runtime/core/view.hpp"

#include <cstdint>
#include <vector>

namespace shoal::core {

/// What runs where in one view.
struct plan {
  epoch number = 0;
  std::vector<assignment> jobs; ///< of the running jobs, by job id
};

/// So much faster must a new layout be to replace one that works.
inline constexpr std::uint64_t keep_percent = 10;

[[nodiscard]] plan make_plan(const view& v);

/// Why a job cannot run on the members that there are even with all their
/// memory to itself, in numbers; empty if it can, or if nobody can work yet.
[[nodiscard]] std::string never_fits(const view& v, const job_entry& job);

/// Whether all who take part in `a`, made in an earlier view, still can: they
/// are members as they were, and none is cut from another.
[[nodiscard]] bool undisturbed(const view& v, const assignment& a);

/// "1f1b, replica 0: a layers 0-3, b layers 4-7; replica 1: ...": how and where
/// a job runs, what its run file asks for in vain and who is idle, and why
/// (plan_reasons.hpp).
[[nodiscard]] std::string to_text(const view& v, const assignment& a);

/// "running", "done", ...
[[nodiscard]] const char* to_text(job_state s);

/// Predicted time of one step, and what it takes of each member.
struct prediction {
  nanoseconds step = 0;
  struct need {
    member_id where;
    std::uint64_t bytes = 0; ///< of memory
    nanoseconds busy = 0;    ///< of its device, forward and backward
  };
  std::vector<need> members; ///< that take part
};
[[nodiscard]] prediction predict(const view& v, const assignment& a);

/// The longest time in which, by the prediction, nothing of the job need end
/// on any peer: a step, or the transfer of all its
/// state on the slowest way.
[[nodiscard]] nanoseconds longest_wait(const view& v, const assignment& a);

} // namespace shoal::core
