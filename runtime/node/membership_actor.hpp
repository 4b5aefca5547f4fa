// runtime/node/membership_actor.hpp -- the shell around the cluster core.
//
// Message          Effect
// cluster_start    builds the core; what came before is then given to it
// cluster_event    one step of the core; its actions are carried out in order
// cluster_stop     ends the actor
//
// The actor is detached (a thread of its own), since a vote must be on disk
// before the message that tells of it leaves: persist blocks.
//
// Errors: a record that cannot be written ends the node (hooks::failed): a
//         peer that cannot remember its votes must not vote.
#pragma once

#include "runtime/core/cluster/membership.hpp"
#include "runtime/vote_file.hpp"

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/fwd.hpp>

#include <atomic>
#include <functional>
#include <memory>

namespace shoal::runtime {

/// What the core's actions do in the world. On the actor's thread; must not
/// wait.
struct membership_hooks {
  std::function<void(const std::vector<core::peer_id>& to,
                     const core::cluster::message& what)>
    send;
  std::function<void(const std::string& address)> connect;
  std::function<void(const core::cluster::new_view& v)> new_view;
  std::function<void(const core::cluster::waiting_for& w)> waiting;
  std::function<void(bool clean)> left;
  std::function<void(const core::cluster::rejected& r)> rejected;
  std::function<void(const core::cluster::key_record& keys)> use_keys;
  /// After every step: for status.
  std::function<void(core::cluster::phase p,
                     std::vector<core::peer_id> reachable)>
    stepped;
  std::function<void(const std::string& line)> say;
  std::function<void(const std::string& why)> failed;
};

struct cluster_start {
  std::shared_ptr<core::cluster::config> config;
  std::filesystem::path folder; ///< of the records; empty: keeps none
  core::cluster::history stored;
};
struct cluster_event {
  core::cluster::event what;
};
struct cluster_stop {};

/// Events that wait for the actor; peers' messages over it are dropped, as
/// the core expects of a network.
inline constexpr std::size_t cluster_events_max = 16384;

caf::actor spawn_membership(caf::actor_system& system, membership_hooks hooks,
                            std::shared_ptr<std::atomic<std::size_t>> pending);

} // namespace shoal::runtime

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::cluster_start)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::cluster_event)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::cluster_stop)
