// actors/gateway/next_version.hpp -- when a served model that follows a training
// job takes that job's next checkpoint.
//
// What decides that, and when the former version goes, is
// runtime/core/serving/version_turn.hpp.
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
/// one, or that the former version goes. To be called about every second. @pre the model follows a job
void propose_next_version(runtime::context& node,
                          const std::shared_ptr<served_model>& model,
                          const poster& post, core::nanoseconds now);

} // namespace shoal::actors
