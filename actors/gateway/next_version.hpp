// actors/gateway/next_version.hpp -- when a served model that follows a training
// job takes that job's next checkpoint.
//
// Requests keep the version that they began with, and at most two versions are
// served. So a checkpoint becomes the next version only while the version before
// the present one has no request anywhere; until then it waits, and a newer one
// takes its place. A version that is not ready in time is replaced, too: its files
// may be gone.
//
// One gateway proposes: that of the peer that speaks for the first pipeline.
// Every member's log names the checkpoints of every job. Its own disk first gets
// the files: the peers that wrote a new checkpoint may be the only ones that have
// it, and may die.
//
// Threads: the gateway's.
#pragma once

#include "actors/gateway/served_model.hpp"

namespace shoal::actors {

/// Looks for a newer checkpoint, and proposes it as the next version if it can be
/// one. To be called about every second. @pre the model follows a job
void propose_next_version(runtime::context& node,
                          const std::shared_ptr<served_model>& model,
                          const poster& post, core::nanoseconds now);

} // namespace shoal::actors
