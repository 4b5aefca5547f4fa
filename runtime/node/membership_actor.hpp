// runtime/node/membership_actor.hpp -- the shell around the cluster core.
//
// Message          Effect
// cluster_start    builds the core; what came before is then given to it
// cluster_event    one step of the core; its actions are carried out in order,
//                  but for what waits for the disk (core/cluster/outbox.hpp)
// cluster_stop     ends the actor
//
// The actor is detached (a thread of its own): heartbeats are answered however
// busy the scheduler is. It never waits for the disk: records are written on
// cluster_start::disk, one at a time.
//
// Errors: a disk that takes no records is said once, and once more when it
//         does again; meanwhile they are elsewhere (vote_file.hpp). While they
//         can be stored nowhere the peer withholds its votes.
#pragma once

#include "runtime/core/cluster/membership.hpp"
#include "runtime/identity/vote_file.hpp"
#include "runtime/work/device_queue.hpp"

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>

#include <atomic>
#include <chrono>
#include <memory>

namespace shoal::runtime {

/// What the core's actions do in the world. On the actor's thread; must not
/// wait.
class membership_handler {
public:
  virtual ~membership_handler() = default;
  virtual void send(const std::vector<core::peer_id>& to,
                    const core::cluster::message& what) = 0;
  virtual void connect(const std::string& address) = 0;
  virtual void disconnect(const core::peer_id& peer) = 0;
  virtual void adopt(const core::cluster::new_view& v) = 0;
  virtual void waiting(const core::cluster::waiting_for& w) = 0;
  virtual void left(bool clean) = 0;
  virtual void shut_out() = 0;
  virtual void rejected(const core::cluster::rejected& r) = 0;
  virtual void use_keys(const core::cluster::key_record& keys) = 0;
  /// After every step: for status.
  virtual void
  stepped(core::cluster::phase p, std::vector<core::peer_id> reachable) = 0;
  virtual void say(const std::string& line) = 0;
};

struct cluster_start {
  std::shared_ptr<core::cluster::config> config;
  std::shared_ptr<vote_file> votes; ///< from now on used on `disk` only
  device_queue* disk = nullptr;     ///< for records alone; outlives the actor
  core::cluster::history stored;
};
struct cluster_event {
  core::cluster::event what;
};
struct cluster_stop {};

/// After so long a disk that has failed is tried again.
inline constexpr std::chrono::milliseconds record_retry{1000};
/// A record that takes so long is worth a word: an election waits for it.
inline constexpr std::chrono::milliseconds record_slow{1000};

/// Events that wait for the actor; peers' messages over it are dropped, as
/// the core expects of a network.
inline constexpr std::size_t cluster_events_max = 16384;

/// @pre `node` outlives the actor.
caf::actor spawn_membership(caf::actor_system& system, membership_handler& node,
                            std::shared_ptr<std::atomic<std::size_t>> pending);

} // namespace shoal::runtime

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::cluster_start)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::cluster_event)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::cluster_stop)
