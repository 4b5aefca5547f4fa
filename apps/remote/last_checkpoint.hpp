// apps/remote/last_checkpoint.hpp -- the checkpoint of a job that ended while the
// asked node was away.
//
// Threads: one. Blocks: it asks each peer until one knows, 10 s at most each
//          (client_config::timeout), and says so. Errors: none; a
//          peer that does not answer is passed over.
#pragma once

#include "apps/common/commands.hpp"
#include "apps/remote/status_json.hpp"
#include "runtime/jobs/job_log.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace shoal::apps {

/// The newest checkpoint of an ended job that other peers know, if it is newer than
/// what the asked node has heard of: it was away then. That of the last step, as soon
/// as one knows it.
/// @param status of that node
/// @param ended_at the step at which the job has ended, if its end is newer than the
/// status
/// @param say takes a line for the user before others are asked; empty: stderr
std::optional<runtime::job_event>
last_elsewhere(const status_json& status, const std::string& id,
               const node_address& at,
               const std::function<void(const std::string&)>& say = {},
               std::optional<std::uint64_t> ended_at = {});

} // namespace shoal::apps
