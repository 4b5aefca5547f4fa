// runtime/jobs/unheld_roles.hpp -- [[roles]] of a run file that no peer starts.
//
// Views contain the roles of each member, so every peer finds the same and can
// report it, also a peer that is not concerned. A default that is not met is no
// wish: the user has not asked for it.
#pragma once

#include "runtime/core/planning/plan_reasons.hpp"
#include "runtime/jobs/run_config.hpp"

#include <string>
#include <vector>

namespace shoal::runtime {

/// For a job that runs as `place`; nothing while it waits.
[[nodiscard]] std::vector<core::unheld_wish>
unheld_roles(const core::view& v, const core::assignment& place,
             const std::vector<role_placement>& roles);

/// All that the job's run file asks for and `place` does not meet: the
/// planner's wishes, and roles.
[[nodiscard]] std::vector<core::unheld_wish>
unheld_of(const core::view& v, const core::assignment& place);

} // namespace shoal::runtime
