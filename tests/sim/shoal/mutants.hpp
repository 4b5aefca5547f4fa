// tests/sim/shoal/mutants.hpp -- bugs that the checks must find.
//
// They are made around the product: in the inputs and actions of its job core,
// and in functions that it calls. The product's code has none of them.
#pragma once

#include "runtime/core/cluster/events.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/training/resume.hpp"

#include <optional>
#include <vector>

namespace shoal::sim {

class shoal_world;

/// Changes the numbers of places in a view's plan.
void mutate(const shoal_world& world, const core::view& v, core::plan& p);

/// Changes what a node asks of its membership core.
void mutate(const shoal_world& world, core::cluster::event& e);

/// The core's input in place of `in`: one or more events.
std::vector<core::job_input>
mutate(shoal_world& world, int node, const core::island_id& id,
       const core::job_input& in);

/// Changes the core's actions.
void mutate(shoal_world& world, int node, const core::island_id& id,
            const core::job_input& in, core::job_actions& out);

} // namespace shoal::sim
