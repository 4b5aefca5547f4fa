// runtime/jobs/unheld_roles.hpp -- [[roles]] of a run file that no peer starts.
//
// Views say which roles each member has, so every peer finds the same and can
// say it, also one that is not concerned. A default that is not reached is no
// wish: nobody has asked for it.
#pragma once

#include "runtime/core/planning/plan_reasons.hpp"
#include "runtime/jobs/run_config.hpp"

#include <string>
#include <vector>

namespace shoal::runtime {

/// Of a job that runs as `place`; nothing while it waits.
[[nodiscard]] std::vector<core::unheld_wish>
unheld_roles(const core::view& v, const core::assignment& place,
             const std::vector<role_placement>& roles);

/// All that `place` does not hold of what the job's run file asks for: the
/// planner's wishes, and roles.
[[nodiscard]] std::vector<core::unheld_wish>
unheld_of(const core::view& v, const core::assignment& place);

} // namespace shoal::runtime
