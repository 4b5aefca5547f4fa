// apps/train/detached_start.hpp -- what --detach waits for: the first step of
// the job that it has submitted.
//
// Until then perhaps only the node that took the job has its data.
#pragma once

#include "apps/common/commands.hpp"
#include "apps/common/progress.hpp"
#include "runtime/control/client.hpp"

#include <functional>

namespace shoal::apps {

/// Says every few seconds what the job waits for, and at the end if it has not
/// begun: it may have to wait for room.
/// @param stops asked once a second; true ends the waiting
/// @returns a failure if the node is lost meanwhile, or the job has ended before
model::status
await_first_step(runtime::client& client, progress& out, core::job_id job,
                 const node_address& at, const std::function<bool()>& stops);

} // namespace shoal::apps
