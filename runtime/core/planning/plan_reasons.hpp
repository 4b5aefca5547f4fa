// runtime/core/planning/plan_reasons.hpp -- why a plan is not what somebody may
// expect: pure functions of the view, so that every peer says the same.
//
// A wish is a key of the run file by which its user asks for a layout, a
// schedule or copies. The planner holds it as far as members allow; what it
// does not hold is part of the plan, with the cause. Likewise the members that
// have nothing to do.
//
// Units: bytes, nanoseconds. Cost: linear in members and stages.
#pragma once

#include "runtime/core/planning/plan.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shoal::core {

struct unheld_wish {
  std::string key; ///< "parallelism.pipeline_parallel_degree"
  std::string wanted;
  std::string got; ///< "2 stages"
  std::string why;
  friend bool operator==(const unheld_wish&, const unheld_wish&) = default;
};

/// Of `a`, which make_plan(v) gave; nothing while the job waits.
[[nodiscard]] std::vector<unheld_wish>
unheld_wishes(const view& v, const assignment& a);

/// "pipeline_parallel_degree = 3: 2 stages, as the model has 2 layers".
[[nodiscard]] std::string to_text(const unheld_wish& w);

/// to_text(v, a) of plan.hpp, with these wishes in place of unheld_wishes(v, a).
[[nodiscard]] std::string to_text(const view& v, const assignment& a,
                                  const std::vector<unheld_wish>& unheld);

struct idle_member {
  member_id who;
  std::string why; ///< "shares its host's cores with a"
};

/// Members that neither compute nor hold state under `a`, by id; nothing while
/// the job waits.
[[nodiscard]] std::vector<idle_member>
idle_members(const view& v, const assignment& a);

/// What an assignment needs of one member's memory.
struct memory_kinds {
  std::uint64_t parameters = 0;
  std::uint64_t gradients = 0;
  std::uint64_t optimizer = 0;
  std::uint64_t activations = 0;
  std::uint64_t copies = 0; ///< of others' state, and state that arrives
  std::uint64_t sum() const {
    return parameters + gradients + optimizer + activations + copies;
  }
};
[[nodiscard]] std::map<member_id, memory_kinds>
memory_of(const job_entry& job, const assignment& a);

/// Floating-point operations of one step.
[[nodiscard]] std::uint64_t step_flops(const job_entry& job);

/// MFLOP/s of all members that compute under `a`, as measured; those of one
/// host have its cores once.
[[nodiscard]] std::uint64_t mflops_of(const view& v, const assignment& a);

} // namespace shoal::core
