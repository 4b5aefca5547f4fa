// actors/job_kinds.hpp -- the actor that runs an island, by the job's kind.
//
// The supervisor starts one for each island of each running job. It understands
// the messages of job/job.hpp. A new kind of job is a row in job_kinds.cpp, and
// one in the table of placers (runtime/core/planning/placers.cpp).
#pragma once

#include "actors/job/job.hpp"

namespace shoal::actors {

/// @returns nothing if the job's run description cannot be read, and `why`
using island_starter = std::optional<caf::actor> (*)(caf::actor_system& system,
                                                     job_config config,
                                                     std::string& why);

[[nodiscard]] island_starter starter_of(core::job_kind kind);

} // namespace shoal::actors
