// runtime/node/node_wiring.hpp -- connects the parts of a node to one peer.
//
//    fabrics --take(), up(), down()--> wiring --tell()--> cluster core
//       ^                               |  ^                 |
//       +-- send(), connect(), drop() --+  +---- adopt() ----+
//                                       |
//                 blob exchange, actors of roles: context
//
// It passes each message to the part that handles it, each view to links,
// actors and gate in this order, and the actors' proposals to the cluster core.
// The product (node_impl.hpp), the simulation (tests/sim/shoal) and the tests
// of actors (tests/actors/small_shoal) use this class with other fabrics,
// queues, clocks and disks.
//
// W-1: an actor is told of a view after view() returns it.
// W-2: messages that count only from members, such as credits, pass after the
//      actors were told of the view that has their sender.
//
// Threads:   any; adopt() on one thread at a time. No lock is held while a
//            part, a port or an actor is called.
// Ownership: parts and ports outlive the wiring, and the actor system ends
//            before it.
#pragma once

#include "runtime/context.hpp"
#include "runtime/core/cluster/events.hpp"
#include "runtime/node/state/role_actors.hpp"
#include "runtime/wire/envelope.hpp"

#include <atomic>
#include <mutex>
#include <set>
#include <span>
#include <system_error>

namespace shoal::runtime {

class blob_exchange;

/// Port: the other peers. No member waits.
class node_network {
public:
  virtual ~node_network() = default;
  /// Sends an encoded envelope, which may be lost like any message.
  virtual std::error_code
  send(const core::peer_id& to, std::span<const std::byte> encoded) = 0;
  /// Like send(), but a member that is not connected yet gets it as soon as it
  /// is.
  virtual void
  send_when_up(const core::peer_id& to, const envelope& message) = 0;
  virtual void connect(const std::string& address) = 0;
  /// Closes all connections with a peer.
  virtual void drop(const core::peer_id& peer) = 0;
  /// Sets the members of the newest view: messages that count only from members
  /// pass from these.
  virtual void set_members(std::set<core::peer_id> members) = 0;
  /// Transfers of the sub-plan `plan` belong to the job.
  virtual void name_plan(std::uint64_t plan, core::job_id job) = 0;
  virtual link_hub& links() = 0; ///< for use by actors
  /// Logs a fault of a peer, within the budget of such lines.
  virtual void complain(const std::string& line) = 0;
};

/// Port: the cluster core and the node around the wiring. No member waits.
class node_host {
public:
  virtual ~node_host() = default;
  /// An event for the cluster core.
  virtual void tell(core::cluster::event e) = 0;
  /// The same for a peer's message, which may be dropped.
  virtual void hear(const core::peer_id& from, core::cluster::message&& m) = 0;
  /// Where the jobs of `v` run: core::make_plan(v), perhaps computed before.
  virtual core::plan make_plan(const core::view& v) = 0;
  /// `now` is about to take effect; `before` may be null. view() still returns
  /// `before`.
  virtual void
  adopting(const core::view* before,
           const std::shared_ptr<const core::view>& now, bool member) = 0;
  /// The view is in effect: actors and gate know of it.
  virtual void adopted(const core::view& now, bool member) = 0;
  virtual bool in_quorum() const = 0;
  /// No job needs this node. @returns whether it is leaving and did not know
  /// that.
  virtual bool release() = 0;
  virtual void worked(const core::island_id& id, core::nanoseconds busy) = 0;
  virtual void disks_refuse(const core::island_id&,
                            const std::vector<core::peer_id>& /*at*/) {}
  virtual void offer_disk(std::uint64_t /*bytes*/, bool /*refused*/) {}
  virtual void hung(const std::string& why) = 0;
  virtual void add_metrics(metric_page& /*to*/) const {}
  virtual void serves(const std::vector<core::served_load>& /*models*/) {}
  virtual void say(const std::string& line) = 0;
  virtual timeline& trace() = 0;
  /// The operations by which the actors of an island train.
  virtual training_operations& operations(const core::island_id&) {
    return plain_operations();
  }
};

/// The parts that actors use by their context; null where a node has none.
struct node_parts {
  core::peer_id self{};
  std::filesystem::path data_dir;
  caf::actor_system* system = nullptr;
  device_queue* device = nullptr;
  device_queue* reductions = nullptr;
  device_queue* prompts = nullptr;
  device_queue* masks = nullptr;
  device_queue* disk = nullptr;
  store* blobs = nullptr;
  job_log* log = nullptr;
  blob_exchange* exchange = nullptr;
  const role_table* roles = nullptr;
};

class node_wiring final : public context {
public:
  node_wiring(node_parts parts, node_network& network, node_host& host);
  ~node_wiring() override;

  // Messages of a peer.
  void take(const core::peer_id& from, core::cluster::message&& m);
  void take(const core::peer_id& from, core::job_message&& m);
  void take(const core::peer_id& from, core::serve_message&& m);
  void take(const core::peer_id& from, role_message&& m);
  void take(const core::peer_id& from, blob_request&& m);
  void take(const core::peer_id& from, blob_chunk&& m);

  // Changes of connections.
  void up(const core::peer_id& peer, std::uint64_t instance);
  void down(const core::peer_id& peer);

  // Requests of the cluster core.
  void send(const std::vector<core::peer_id>& to,
            const core::cluster::message& what);
  /// A view was decided. The first one starts the actors of the roles.
  void adopt(const core::cluster::new_view& v);

  /// The newest view with its plan; null before the first.
  std::pair<std::shared_ptr<const core::view>,
            std::shared_ptr<const core::plan>>
  view_and_plan() const;

  /// Tells the gateway whether there is a quorum (quorum_changed).
  void tell_quorum(const std::string& why_none,
                   const std::vector<core::peer_id>& reachable);
  /// The node leaves: its jobs have to end or to move, then released().
  void stop_jobs(bool drain);
  /// The actor of a role, or the one bound to an address; null if there is
  /// none.
  caf::actor find(const std::string& role) const { return actors_.find(role); }
  /// Ends the actors of roles, also those that adopt() would make later. No
  /// message reaches them afterwards.
  void end_actors() { actors_.end_all(); }
  /// From now on nothing that actors do has an effect, as after a kill.
  void close() { closed_ = true; }

  // context
  const core::peer_id& self() const override { return parts_.self; }
  caf::actor_system& system() override { return *parts_.system; }
  link_hub& links() override { return network_.links(); }
  device_queue& device() override { return *parts_.device; }
  device_queue& reductions() override { return *parts_.reductions; }
  device_queue& disk() override { return *parts_.disk; }
  device_queue& prompts() override { return *parts_.prompts; }
  device_queue& masks() override { return *parts_.masks; }
  store& blobs() override { return *parts_.blobs; }
  job_log& log() override { return *parts_.log; }
  std::filesystem::path data_dir() const override { return parts_.data_dir; }
  std::shared_ptr<const core::view> view() const override;
  std::shared_ptr<const core::plan> plan() const override;
  void send(const core::peer_id& to, core::job_message message) override;
  void send(const core::peer_id& to, core::serve_message message) override;
  void send_role(const core::peer_id& to, const std::string& role,
                 std::vector<std::byte> bytes) override;
  const role_table& roles() const override { return *parts_.roles; }
  void bind_role(const std::string& address, caf::actor actor) override;
  void worked(const core::island_id& id, core::nanoseconds busy) override;
  void propose_end(const core::island_id& id, core::job_state state,
                   std::uint64_t done_step, core::epoch since,
                   const std::string& cause = {}) override;
  void propose_retry(const core::island_id& id, core::epoch since) override;
  void propose_version(core::job_id job, const core::model_version& version,
                       std::uint64_t keeps) override;
  void propose_pipelines(core::job_id job, std::uint32_t count,
                         core::epoch since) override;
  void propose_arrived(const core::island_id& id, core::epoch since) override;
  void
  propose_expulsion(const core::peer_id& peer, core::epoch number) override;
  bool in_quorum() const override { return host_.in_quorum(); }
  void disks_refuse(const core::island_id& id,
                    const std::vector<core::peer_id>& at) override {
    host_.disks_refuse(id, at);
  }
  void offer_disk(std::uint64_t bytes, bool refused) override {
    host_.offer_disk(bytes, refused);
  }
  void hung(const std::string& why) override { host_.hung(why); }
  void add_metrics(metric_page& to) const override { host_.add_metrics(to); }
  void serves(const std::vector<core::served_load>& models) override {
    host_.serves(models);
  }
  void fetch_blob(const core::blob_digest& digest,
                  std::vector<core::peer_id> holders,
                  std::function<void(std::error_code)> done) override;
  void
  has_blob(const core::blob_digest& digest, core::job_id job,
           const core::peer_id& peer, std::function<void(bool)> done) override;
  std::uint64_t blob_bytes_moved() const override;
  void released() override;
  void say(const std::string& line) override { host_.say(line); }
  timeline& trace() override { return host_.trace(); }
  training_operations& operations(const core::island_id& id) override {
    return host_.operations(id);
  }

private:
  void propose(core::cluster::event e);

  const node_parts parts_;
  node_network& network_;
  node_host& host_;
  std::atomic<bool> closed_{false};
  role_actors actors_;
  mutable std::mutex mutex_; ///< guards what follows
  std::shared_ptr<const core::view> view_;
  std::shared_ptr<const core::plan> plan_;
};

} // namespace shoal::runtime
