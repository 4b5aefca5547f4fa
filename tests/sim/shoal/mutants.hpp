// tests/sim/shoal/mutants.hpp -- bugs that the checks must find.
//
// They are made around the product: in what its job core is told and answers,
// and in functions that it calls. The product's code has none of them.
#pragma once

#include "runtime/core/training/job_core.hpp"

#include <optional>
#include <vector>

namespace shoal::sim {

class shoal_world;

/// What the core is told in place of `in`: one or more events.
std::vector<core::job_input>
mutate(shoal_world& world, int node, const core::job_input& in);

/// Changes what the core has answered.
void mutate(shoal_world& world, int node, const core::job_input& in,
            core::job_actions& out);

} // namespace shoal::sim
