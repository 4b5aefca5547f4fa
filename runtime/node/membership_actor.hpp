// runtime/node/membership_actor.hpp -- the thread, disk and clock of the
// cluster core.
//
// Message          Effect
// cluster_start    builds the core, which then gets all earlier events
// cluster_event    one step of the core (cluster_shell.hpp)
// cluster_stop     ends the actor
//
// The actor is detached (a thread of its own), so heartbeats are answered
// however busy the scheduler is. It never waits for the disk: records are
// written on cluster_start::disk, one at a time.
//
// Errors: a disk that takes no records is reported once, and again when it has
//         recovered; meanwhile they are elsewhere (vote_file.hpp). While they
//         cannot be stored anywhere the peer withholds its votes.
#pragma once

#include "runtime/identity/vote_file.hpp"
#include "runtime/node/cluster_shell.hpp"
#include "runtime/work/device_queue.hpp"

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>

#include <atomic>
#include <chrono>
#include <memory>

namespace shoal::runtime {

struct cluster_start {
  std::shared_ptr<core::cluster::config> config;
  std::shared_ptr<vote_file> votes; ///< from now on used only on `disk`
  device_queue* disk = nullptr;     ///< only for records; outlives the actor
  core::cluster::history stored;
};
struct cluster_event {
  core::cluster::event what;
};
struct cluster_stop {};

/// Pause until a disk that has failed is tried again.
inline constexpr std::chrono::milliseconds record_retry{1000};
/// A record that takes longer is reported: an election waits for it.
inline constexpr std::chrono::milliseconds record_slow{1000};

/// Limit of the events that wait for the actor; beyond it peers' messages are
/// dropped, as the core expects of a network.
inline constexpr std::size_t cluster_events_max = 16384;

/// @pre `node` outlives the actor.
caf::actor spawn_membership(caf::actor_system& system, membership_handler& node,
                            std::shared_ptr<std::atomic<std::size_t>> pending);

} // namespace shoal::runtime

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::cluster_start)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::cluster_event)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::cluster_stop)
