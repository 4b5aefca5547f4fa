// actors/serving/serve_job.hpp -- one pipeline of a served model on this peer.
//
// Loads the weights of this peer's stages, computes their passes, and, where the
// first stage is here, speaks for the pipeline: it runs core::serving_pipeline, which
// decides everything. A new place of the island ends all of that and begins anew,
// with the weights that are here already.
//
// Message            Effect
// job_view           the island's place in a newer view, or that the job has ended
// serve_message_in   requests of gateways, passes, answers of stages
// drain_job          the job ends
// (private)          completions of device and disk work and of transfers
//
// Messages of a newer place than the one here wait until the view is here.
#pragma once

#include "actors/job/job.hpp"

namespace shoal::actors {

/// @returns nothing if the job's description cannot be read, and `why`
std::optional<caf::actor>
spawn_serve_job(caf::actor_system& system, job_config config, std::string& why);

} // namespace shoal::actors
