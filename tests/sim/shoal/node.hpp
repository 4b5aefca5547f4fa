// tests/sim/shoal/node.hpp -- one simulated process.
//
// The product's node (runtime/node/node_wiring.hpp, cluster_shell.hpp,
// gate.hpp) without its own threads, sockets and files: here are its ports. The
// fabric is the world's network, queues and disk take the world's time, and the
// actors run under CAF's test coordinator, whose clock is the world's. Every
// input (a message, an end of work, a timer) is one call of enter(): it waits
// while the process is stopped, and the actors run until they are idle.
// Destroying it is kill -9: it has no effect afterwards, but its folder stays.
#pragma once

#include "runtime/jobs/job_journal.hpp"
#include "runtime/links/link_service.hpp"
#include "runtime/node/cluster_shell.hpp"
#include "runtime/node/gate.hpp"
#include "runtime/node/node_wiring.hpp"
#include "runtime/store/exchange.hpp"
#include "tests/sim/shoal/devices.hpp"
#include "tests/sim/shoal/disk.hpp"
#include "tests/sim/shoal/links.hpp"
#include "tests/sim/shoal/seams.hpp"
#include "tests/sim/shoal/world.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <optional>

namespace shoal::sim {

class sim_node final : private transport::fabric_handler,
                       private runtime::message_handler,
                       private runtime::credit_sender,
                       private runtime::blob_sender,
                       private runtime::node_network,
                       private runtime::node_host,
                       private runtime::membership_handler,
                       private runtime::shell_host,
                       private runtime::step_observer {
public:
  sim_node(shoal_world& world, machine& home);
  ~sim_node() override;

  using work = std::function<void()>;
  /// An input for the process.
  void enter(work what);
  /// SIGSTOP and SIGCONT.
  void stop() { stopped_ = true; }
  void go_on();
  bool stopped() const { return stopped_; }
  /// From now on the process has no effect; the destructor does the rest.
  void die(bool silent);

  /// Asks it to leave the shoal cleanly.
  void leave();

  /// To the cluster core: at once, except for events from actors.
  void tell(core::cluster::event e) override;
  const core::cluster::membership& member() const { return shell_->core(); }
  void drop(const core::peer_id& peer) override { fabric_->drop(peer); }
  /// The device stops in the middle of a piece of work, or resumes.
  void hang() { device_->hang(); }
  void hang_disk() { disk_->hang(); }
  void wake();
  void wake_disk();
  bool hangs() const { return device_->hangs(); }
  /// The next tensor that is sent from here is lost, though all connections
  /// between the two peers are up.
  void lose_transfer() { watched_->lose_next(true); }
  /// What hangs goes on hanging, but no new hang begins.
  void settle();
  core::blob_digest put(std::span<const std::byte> bytes);
  runtime::job_journal& journal() { return *journal_; }
  /// What jobs have left behind; empty if nothing.
  std::string left_over() const;

  std::shared_ptr<const core::view> view() const { return wiring_->view(); }
  void say(const std::string& line) override;

  /// Limit of inputs that wait for a stopped process; sockets hold this many
  /// bytes.
  static constexpr std::size_t waiting_max = 200000;
  static constexpr std::size_t pieces_max = 512;    ///< of work in a queue
  static constexpr std::size_t turns_max = 1000000; ///< of actors in one event

private:
  // transport::fabric_handler
  void up(const transport::peer_info& peer) override;
  void down(const core::peer_id& peer, std::error_code why) override;
  void
  message(const core::peer_id& peer, std::span<const std::byte> bytes) override;
  void connect_failed(const std::string& address, std::error_code) override;

  // runtime::message_handler: messages that have passed the gate. No peer of
  // the simulation sends the last four.
  void take(const peer& from, core::cluster::message&& m) override {
    wiring_->take(from, std::move(m));
  }
  void take(const peer& from, core::job_message&& m) override {
    wiring_->take(from, std::move(m));
  }
  void take(const peer& from, core::serve_message&& m) override {
    wiring_->take(from, std::move(m));
  }
  void take(const peer& from, runtime::link_credit&& m) override {
    links_->credit_received(from, m);
  }
  void take(const peer& from, runtime::blob_request&& m) override {
    wiring_->take(from, std::move(m));
  }
  void take(const peer& from, runtime::blob_chunk&& m) override {
    wiring_->take(from, std::move(m));
  }
  void take(const peer& from, runtime::role_message&& m) override {
    wiring_->take(from, std::move(m));
  }
  void take(const peer&, runtime::paired_address&&) override {}
  void take(const peer&, runtime::client_request&&) override {}
  void take(const peer&, runtime::client_reply&&) override {}
  void take(const peer&, runtime::link_probe&&) override {}

  // runtime::credit_sender, runtime::blob_sender
  std::error_code send_credit(const core::peer_id& to,
                              const runtime::link_credit& credit) override;
  std::error_code send_request(const core::peer_id& to,
                               const runtime::blob_request& request) override;
  std::error_code
  send_chunk(const core::peer_id& to, runtime::blob_chunk chunk) override;

  // runtime::node_network: the world's network, which loses messages
  std::error_code
  send(const core::peer_id& to, std::span<const std::byte> encoded) override;
  void send_when_up(const core::peer_id& to,
                    const runtime::envelope& message) override;
  void connect(const std::string& address) override;
  void set_members(std::set<core::peer_id> members) override {
    gate_.members(std::move(members));
  }
  void name_plan(std::uint64_t plan, core::job_id job) override {
    links_->name_plan(plan, job);
  }
  runtime::link_hub& links() override { return *watched_; }
  void complain(const std::string& line) override { say(line); }

  // runtime::node_host. Nothing is measured here, and no quorum is needed.
  void hear(const core::peer_id& from, core::cluster::message&& m) override {
    tell(core::cluster::received{from, std::move(m)});
  }
  core::plan make_plan(const core::view& v) override {
    return world_.plan_of(v);
  }
  void adopting(const core::view*, const std::shared_ptr<const core::view>& now,
                bool member) override;
  void adopted(const core::view& now, bool member) override;
  bool in_quorum() const override { return true; }
  bool release() override;
  void worked(const core::island_id&, core::nanoseconds) override {}
  void hung(const std::string& why) override;
  runtime::timeline& trace() override { return runtime::no_timeline(); }
  runtime::training_operations& operations(const core::island_id& id) override {
    return operations_.try_emplace(id, world_, home_.number, id).first->second;
  }

  // runtime::membership_handler: the core's actions. Keys are not simulated.
  void send(const std::vector<core::peer_id>& to,
            const core::cluster::message& what) override {
    wiring_->send(to, what);
  }
  void disconnect(const core::peer_id& peer) override { drop(peer); }
  void adopt(const core::cluster::new_view& v) override { wiring_->adopt(v); }
  void waiting(const core::cluster::waiting_for&) override {}
  void left(bool clean) override;
  void shut_out() override {}
  void rejected(const core::cluster::rejected& r) override;
  void use_keys(const core::cluster::key_record&) override {}
  void stepped(core::cluster::phase, std::vector<core::peer_id>) override {}

  // runtime::shell_host: disk and timer of the core
  bool store(const core::cluster::outbox::write& w) override;
  void wake_at(nanoseconds when) override;

  // runtime::step_observer
  void
  decided(const core::cluster::event& e, core::cluster::actions& out) override;

  /// Runs later, if this process is still alive then.
  void later(nanoseconds delay, work what);
  void begin_piece(sim_queue& q, nanoseconds mean);
  void end_piece(sim_queue& q);
  void pulse();
  void check_limits();
  /// Fails the run if there are more than allowed.
  void check_most(std::size_t are, std::size_t most, const char* of_what);
  void run_actors();
  void wake_in_time();
  void written(const core::cluster::outbox::write& w);
  void keep(const core::cluster::outbox::write& w);

  shoal_world& world_;
  machine& home_;
  std::shared_ptr<bool> lives_ = std::make_shared<bool>(true);
  bool dead_ = false;
  bool stopped_ = false;
  bool leaving_ = false;
  bool released_ = false;
  std::vector<work> waiting_;
  bool inside_ = false;
  bool acting_ = false; ///< an actor is running
  core::nanoseconds tick_at_ = 0;
  core::nanoseconds wake_at_ = 0;

  runtime::role_table roles_;
  std::unique_ptr<kernels::backend> backend_;
  std::unique_ptr<sim_queue> device_, reductions_, disk_;
  std::unique_ptr<sim_store> store_;
  /// Memory for transfers over links, and for gradients.
  std::shared_ptr<counted_memory> memory_ = std::make_shared<counted_memory>();
  std::unique_ptr<runtime::job_journal> journal_;
  std::unique_ptr<runtime::link_service> links_;
  std::unique_ptr<watched_links> watched_;
  std::unique_ptr<transport::loopback::fabric> fabric_;
  std::unique_ptr<runtime::blob_exchange> exchange_;
  runtime::gate gate_;
  std::map<core::island_id, watched_operations> operations_;
  std::unique_ptr<runtime::node_wiring> wiring_;
  std::optional<runtime::cluster_shell> shell_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  caf::scheduler::test_coordinator* scheduler_ = nullptr;
  std::size_t actors_at_rest_ = 0;
};

} // namespace shoal::sim
