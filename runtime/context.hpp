// runtime/context.hpp -- what an actor on a node can use: its whole world.
//
// The supervisor and the user's own actors get the same context; the built-in
// roles use nothing that a custom one cannot. Roles are a table from name to
// factory that main fills: actors::add_builtin(roles), then the user's own.
//
// Threads: every member may be called from any thread and returns at once.
// Errors:  messages to a peer that is not up are dropped: the view tells.
#pragma once

#include "runtime/core/planning/plan.hpp"
#include "runtime/core/training/job_messages.hpp"
#include "runtime/core/view.hpp"
#include "runtime/observe/flight_record.hpp"

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shoal::runtime {

class context;
class device_queue;
class job_log;
class link_hub;
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
  virtual device_queue& device() = 0; ///< computation
  /// Sums of what links bring, beside the computation: one thread.
  virtual device_queue& reductions() = 0;
  virtual device_queue& disk() = 0; ///< blocking file work; backend unused
  virtual store& blobs() = 0;
  virtual job_log& log() = 0;
  virtual std::filesystem::path data_dir() const = 0;

  /// The newest view and its plan (never null after the node is ready).
  virtual std::shared_ptr<const core::view> view() const = 0;
  virtual std::shared_ptr<const core::plan> plan() const = 0;

  /// Sends a job's control message; to this node itself it is delivered like
  /// any other.
  virtual void send(const core::peer_id& to, core::job_message message) = 0;

  /// Sends bytes to the actor of role `role` on a peer: for custom actors. A
  /// role that a run file places has placed_role::address instead of its name.
  virtual void send_role(const core::peer_id& to, const std::string& role,
                         std::vector<std::byte> bytes) = 0;

  /// What this node was started with.
  virtual const role_table& roles() const = 0;
  /// Bytes for `address` go to `actor` from now on; none: to nobody. Not for
  /// names in roles().
  virtual void bind_role(const std::string& address, caf::actor actor) = 0;

  /// A step of the job kept this node's device busy for so long: what the
  /// node says of its speed follows.
  virtual void worked(core::job_id, core::nanoseconds /*busy*/) {}

  /// Proposes a view change: the job ended so. With `since` it is void once the
  /// job has another assignment than that one. `cause`: of a failure, for
  /// people; every peer shows it.
  virtual void propose_job_state(core::job_id job, core::job_state state,
                                 std::uint64_t done_step, core::epoch since,
                                 const std::string& cause = {}) = 0;

  /// Proposes a view change: nothing moves under the job's assignment of
  /// `since`, so that all begin it anew.
  virtual void propose_retry(core::job_id, core::epoch /*since*/) {}
  /// Whether a quorum of the view is in contact: without one nothing comes of
  /// what is proposed.
  virtual bool in_quorum() const { return true; }
  /// Proposes a view change: the work of that member is hung, as seen in view
  /// `number`.
  virtual void propose_expulsion(const core::peer_id&, core::epoch /*number*/) {
  }
  /// Work here can not be stopped: this node can only end, and does.
  virtual void hung(const std::string& /*why*/) {}

  /// The latest events of this node.
  flight_record& flight() { return flight_; }
  /// Proposes another: all that arrives under the job's assignment `since`
  /// (core/planning/arrivals.hpp) is where it should be.
  virtual void propose_arrived(core::job_id job, core::epoch since) = 0;

  /// Fetches a blob from whoever of `holders` has it into the own store;
  /// `done` runs (on some thread; it only posts) with the result.
  virtual void fetch_blob(const core::blob_digest& digest,
                          std::vector<core::peer_id> holders,
                          std::function<void(std::error_code)> done) = 0;

  /// Bytes of blobs that have come from peers and been sent to them: that
  /// fetches move.
  virtual std::uint64_t blob_bytes_moved() const { return 0; }

  /// The supervisor says that nothing here is needed any more by any job, so
  /// that a leaving node may go.
  virtual void released() = 0;

  /// Lines for people: "[stage] ...", to the node's log.
  virtual void say(const std::string& line) = 0;

  /// What this node does when, for people: timeline.hpp.
  virtual timeline& trace() { return no_timeline(); }

  /// By these a job's actors train: training_operations.hpp.
  virtual training_operations& operations() { return plain_operations(); }

private:
  flight_record flight_;
};

// Local messages that the node sends to a role's actor.

/// Another view took effect here.
struct view_changed {
  std::shared_ptr<const core::view> view;
  std::shared_ptr<const core::plan> plan;
};
/// A job's control message from a peer (this node included).
struct job_message_in {
  core::peer_id from{};
  std::shared_ptr<const core::job_message> message;
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
/// A client asked to stop a job after the step under way, with a checkpoint.
struct drain_job {
  core::job_id job = 0;
};
/// A client asked a job to go on without the checkpoint that it waits for.
struct stop_waiting_job {
  core::job_id job = 0;
};
/// A client has put all files of a checkpoint of a job into the store.
struct checkpoint_offered {
  core::job_id job = 0;
  core::blob_digest manifest{};
  std::uint64_t step = 0;
};

/// An actor that a run file's [[roles]] puts here. It gets job_place at once
/// and whenever the job's place changes, and exit_msg when it is no longer
/// wanted here.
struct placed_role {
  core::job_id job = 0;
  std::string name;       ///< of the role
  std::string parameters; ///< a JSON object, as the run file has it
  std::string address;    ///< where send_role reaches it, on any peer
  int replica = -1;       ///< of "every_stage"; else -1
  int stage = -1;
};
/// Where a job runs, in the newest view; replicas empty: it waits.
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
/// role "supervisor" gets every job message. Those of `placed` are started
/// where run files say.
struct role_table : std::map<std::string, role_factory> {
  std::map<std::string, placed_role_factory> placed;
};

} // namespace shoal::runtime

#include <caf/allowed_unsafe_message_type.hpp>

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::view_changed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::job_message_in)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::role_message_in)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::node_stopping)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::drain_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::stop_waiting_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::checkpoint_offered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::job_place)
