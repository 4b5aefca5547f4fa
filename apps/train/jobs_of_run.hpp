// apps/train/jobs_of_run.hpp -- what a shoal has of a run that is to be resumed
// here, and the request to end a job.
#pragma once

#include "apps/common/commands.hpp"
#include "apps/common/progress.hpp"
#include "apps/remote/status_json.hpp"
#include "runtime/control/client.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::apps {

/// The folder of a run that is resumed.
struct run_folder {
  std::filesystem::path out;
  std::vector<std::string> jobs; ///< all jobs of the run
  std::uint64_t step = 0;        ///< of its newest checkpoint
};

/// Fails if one of the run's jobs is still running, or if the last one has ended
/// with a newer checkpoint than the folder's: those steps would be trained twice.
/// @returns lines about steps of earlier jobs without which the run has gone on
model::result<std::vector<std::string>>
nothing_newer(runtime::client& client, const status_json& status,
              const run_folder& folder, const node_address& at);

/// The last checkpoint of a job that has ended at `step`, as another peer knows it:
/// the node that is asked has not heard of it. Says first that others are asked.
std::optional<runtime::job_event>
last_of_others(runtime::client& client, const std::string& job,
               std::uint64_t step, const node_address& at, progress& out);

/// Asks a node to end a job, by a client of its own: the command's other one is
/// busy watching. Prints the error if there is one.
/// @param drain  after the step under way, with a checkpoint; else at once
/// @returns whether a node has answered
bool stop_job(const runtime::client_config& at, core::job_id job, bool drain);

} // namespace shoal::apps
