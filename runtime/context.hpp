// runtime/context.hpp -- the interface of a node to the actors on it.
//
// The supervisor and custom actors get the same context; the built-in roles use
// nothing that a custom one cannot use. Roles are a table from name to factory,
// filled by main: first actors::add_builtin(roles), then the user's own.
//
// Threads: every member may be called from any thread and returns at once.
// Errors:  messages to a peer that is not up are dropped: the view tells.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/serving/serve_messages.hpp"
#include "runtime/core/serving/served_load.hpp"
#include "runtime/core/training/job_messages.hpp"
#include "runtime/observe/flight_record.hpp"

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace shoal::core {
enum class job_state : std::uint8_t; // runtime/core/job_entry.hpp
struct assignment;                   // runtime/core/assignment.hpp
struct model_version;                // runtime/core/job_entry.hpp
struct plan;                         // runtime/core/planning/plan.hpp
struct view;                         // runtime/core/view.hpp
} // namespace shoal::core

namespace shoal::runtime {

class context;
class device_queue;
class job_log;
class link_hub;
class metric_page;
class store;
class timeline;
class training_operations;
struct role_table;
timeline& no_timeline();
training_operations& plain_operations();

class context {
public:
  virtual ~context() = default;

  virtual const core::peer_id& self() const = 0;
  virtual caf::actor_system& system() = 0;
  virtual link_hub& links() = 0;
  virtual device_queue& device() = 0; ///< for computation
  /// Sums of the data that links bring, apart from the computation: one thread.
  virtual device_queue& reductions() = 0;
  virtual device_queue& disk() = 0; ///< blocking file work; backend unused
  /// Rendering and tokenizing of clients' prompts: one thread; backend unused.
  virtual device_queue& prompts() { return disk(); }
  /// Which tokens the rule of a served text allows next (core/grammar/token_masks.hpp):
  /// one thread; backend unused.
  virtual device_queue& masks() { return prompts(); }
  virtual store& blobs() = 0;
  virtual job_log& log() = 0;
  virtual std::filesystem::path data_dir() const = 0;

  /// The newest view and its plan (never null after the node is ready).
  virtual std::shared_ptr<const core::view> view() const = 0;
  virtual std::shared_ptr<const core::plan> plan() const = 0;

  /// Sends a job's control message; one to this node itself is delivered like
  /// any other.
  virtual void send(const core::peer_id& to, core::job_message message) = 0;

  /// The same of a message about a served model: to the peer's gateway, or to
  /// its actor of the island (is_for_gateways).
  virtual void send(const core::peer_id& to, core::serve_message message) = 0;

  /// Sends bytes to the actor of role `role` on a peer: for custom actors. A
  /// role that a run file places is addressed by placed_role::address instead
  /// of its name.
  virtual void send_role(const core::peer_id& to, const std::string& role,
                         std::vector<std::byte> bytes) = 0;

  /// The roles with which this node was started.
  virtual const role_table& roles() const = 0;
  /// From now on delivers bytes for `address` to `actor`; without an actor they
  /// are dropped. Not for names in roles().
  virtual void bind_role(const std::string& address, caf::actor actor) = 0;

  /// Reports that a step of the island kept this node's device busy for this time;
  /// the node derives its published speed from it.
  virtual void worked(const core::island_id&, core::nanoseconds /*busy*/) {}

  /// Proposes a view change: the island has ended in this state, or has failed,
  /// which ends the job; without `since` the whole job has ended. With it the
  /// proposal is void once the island has another place than that one. `cause`:
  /// the reason of a failure, as text that every peer shows.
  virtual void propose_end(const core::island_id& id, core::job_state state,
                           std::uint64_t done_step, core::epoch since,
                           const std::string& cause = {}) = 0;

  /// Proposes a view change: the served job takes this version, and keeps of the
  /// others only that of step `keeps`; with the newest one as both, no other one.
  virtual void propose_version(core::job_id, const core::model_version&,
                               std::uint64_t /*keeps*/) {}

  /// Proposes a view change because nothing moves in the island's place of
  /// `since`: all participants begin anew.
  virtual void
  propose_retry(const core::island_id& /*id*/, core::epoch /*since*/) {}
  /// Proposes a view change: the served model of a job is to have this number of
  /// pipelines; void once that was changed after `since` (cluster::scale_job).
  virtual void propose_pipelines(core::job_id /*job*/, std::uint32_t /*count*/,
                                 core::epoch /*since*/) {}
  /// Whether a quorum of the view is in contact: without one, no proposal has
  /// an effect.
  virtual bool in_quorum() const { return true; }
  /// Proposes a view change: the work of that member hangs, as seen in view
  /// `number`.
  virtual void propose_expulsion(const core::peer_id&, core::epoch /*number*/) {
  }
  /// Reports which peers' disks refuse checkpoints of the island, as far as
  /// known here: for the status.
  virtual void disks_refuse(const core::island_id&,
                            const std::vector<core::peer_id>& /*at*/) {}
  /// Work on this node cannot be stopped: the node can only end, and does.
  virtual void hung(const std::string& /*why*/) {}

  /// The latest events of this node.
  flight_record& flight() { return flight_; }
  /// Proposes a view change: all units that arrive in the island's place of
  /// `since` (core/planning/arrivals.hpp) are there.
  virtual void
  propose_arrived(const core::island_id& id, core::epoch since) = 0;

  /// Fetches a blob into the own store from any of `holders` that has it;
  /// `done` runs with the result (on some thread; it may only post).
  virtual void fetch_blob(const core::blob_digest& digest,
                          std::vector<core::peer_id> holders,
                          std::function<void(std::error_code)> done) = 0;

  /// Asks a peer whether its disk has a blob, and will keep it for this job for a while
  /// (store::pledge); `done` as that of fetch_blob. A peer that does not answer has
  /// none.
  virtual void has_blob(const core::blob_digest&, core::job_id,
                        const core::peer_id&, std::function<void(bool)> done) {
    const auto tell = std::move(done);
    tell(false);
  }

  /// Reports the room on this node's disk for the files of served models
  /// (core::device_profile::disk_bytes). @param refused the disk has just refused
  /// some: plans are to know at once
  virtual void offer_disk(std::uint64_t /*bytes*/, bool /*refused*/) {}

  /// Bytes of blobs that have come from peers and been sent to them: shows
  /// whether fetches progress.
  virtual std::uint64_t blob_bytes_moved() const { return 0; }

  /// The supervisor reports that no job needs anything on this node any more,
  /// so that a leaving node may go.
  virtual void released() = 0;

  /// Adds what is known of this node: peers, links, jobs. Any thread.
  virtual void add_metrics(metric_page& /*to*/) const {}

  /// Writes a line "[stage] ..." to the node's log.
  virtual void say(const std::string& line) = 0;

  /// Records what this node does at which time: timeline.hpp.
  virtual timeline& trace() { return no_timeline(); }

  /// The operations by which the actors of an island train:
  /// training_operations.hpp.
  virtual training_operations& operations(const core::island_id&) {
    return plain_operations();
  }

  /// The gateway reports how busy the served models are, for the node's status.
  virtual void serves(const std::vector<core::served_load>& /*models*/) {}

private:
  flight_record flight_;
};

// Local messages that the node sends to a role's actor.

/// Another view took effect on this node.
struct view_changed {
  std::shared_ptr<const core::view> view;
  std::shared_ptr<const core::plan> plan;
};
/// A job's control message from a peer (this node included).
struct job_message_in {
  core::peer_id from{};
  std::shared_ptr<const core::job_message> message;
};
/// A message about a served model from a peer (this node included).
struct serve_message_in {
  core::peer_id from{};
  std::shared_ptr<const core::serve_message> message;
};
/// Bytes for a custom role.
struct role_message_in {
  core::peer_id from{};
  std::shared_ptr<const std::vector<std::byte>> bytes;
};
/// The node stops: drain what runs (see `drain`), then answer by released().
struct node_stopping {
  bool drain = true;
};
/// A client asked to stop a job after the current step, with a checkpoint.
struct drain_job {
  core::job_id job = 0;
};
/// A client asked a job to go on without the checkpoint for which it waits.
struct stop_waiting_job {
  core::job_id job = 0;
};
/// A client has put all files of a checkpoint of a job into the store.
struct checkpoint_offered {
  core::job_id job = 0;
  core::blob_digest manifest{};
  std::uint64_t step = 0;
};
/// A client has uploaded these blobs and has gone, without a job for them.
struct blobs_left_behind {
  std::vector<core::blob_digest> blobs;
};

/// An actor that [[roles]] of a run file puts on this node. It gets job_place
/// at once and whenever the job's place changes, and exit_msg when it is no
/// longer wanted here.
struct placed_role {
  core::job_id job = 0;
  std::string name;       ///< of the role
  std::string parameters; ///< a JSON object, as in the run file
  std::string address;    ///< the address for send_role, on any peer
  int replica = -1;       ///< of "every_stage"; else -1
  int stage = -1;
  int island = -1;
};
/// Where a job runs in the newest view; without replicas it waits.
struct job_place {
  std::shared_ptr<const core::view> view;
  std::shared_ptr<const core::assignment> place;
};

/// Starts a role's actor on this node.
using role_factory = std::function<caf::actor(caf::actor_system&, context&)>;
/// Starts an actor of a role that a run file places.
using placed_role_factory =
  std::function<caf::actor(caf::actor_system&, context&, const placed_role&)>;

/// Longest name of a role: with job and stage it fits a message's address.
inline constexpr std::size_t role_name_max = 32;

/// name -> factory. Roles of the table itself are started once per node; the
/// role "supervisor" gets every job message. Roles of `placed` are started
/// where run files place them.
struct role_table : std::map<std::string, role_factory> {
  std::map<std::string, placed_role_factory> placed;
};

} // namespace shoal::runtime

#include <caf/allowed_unsafe_message_type.hpp>

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::view_changed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::job_message_in)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::serve_message_in)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::role_message_in)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::node_stopping)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::drain_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::stop_waiting_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::checkpoint_offered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::blobs_left_behind)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::job_place)
