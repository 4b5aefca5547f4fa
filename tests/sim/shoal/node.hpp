// tests/sim/shoal/node.hpp -- one simulated process.
//
// What runtime/node is in the product, without threads, sockets and files of
// its own: a membership core, the links, the exchange of blobs, the gate, the
// journal and an actor system under CAF's test coordinator, whose clock is the
// world's. Whatever comes in (a message, an end of work, a timer) is one call
// of enter(): it waits while the process is stopped, and the actors run until
// they have nothing to do. Destroying it is kill -9: nothing of it has effect
// afterwards, its folder stays.
#pragma once

#include "runtime/context.hpp"
#include "runtime/core/cluster/membership.hpp"
#include "runtime/core/cluster/outbox.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "runtime/links/link_service.hpp"
#include "runtime/node/gate.hpp"
#include "runtime/store/exchange.hpp"
#include "tests/sim/shoal/devices.hpp"
#include "tests/sim/shoal/disk.hpp"
#include "tests/sim/shoal/links.hpp"
#include "tests/sim/shoal/world.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <optional>

namespace shoal::sim {

class sim_node final : public runtime::context,
                       private transport::fabric_handler,
                       private runtime::message_handler {
public:
  sim_node(shoal_world& world, machine& home);
  ~sim_node() override;

  using work = std::function<void()>;
  /// Something reaches the process.
  void enter(work what);
  /// SIGSTOP and SIGCONT.
  void stop() { stopped_ = true; }
  void go_on();
  bool stopped() const { return stopped_; }
  /// From now on nothing happens here; the destructor does the rest.
  void die(bool silent);

  /// Asks it to leave the shoal in order.
  void leave();

  /// To the membership core.
  void tell(const core::cluster::event& e);
  const core::cluster::membership& member() const { return *core_; }
  void drop(const core::peer_id& peer) { fabric_->drop(peer); }
  /// The device stops in the middle of a piece of work; wakes up again.
  void hang() { device_->hang(); }
  void hang_disk() { disk_->hang(); }
  void wake();
  void wake_disk();
  bool hangs() const { return device_->hangs(); }
  /// The next tensor that is sent from here is never heard of again, though
  /// all that is between the two peers is up.
  void lose_transfer() { watched_->lose_next(true); }
  /// What hangs goes on hanging, but nothing else will.
  void settle();
  core::blob_digest put(std::span<const std::byte> bytes);
  runtime::job_journal& journal() { return *journal_; }
  /// What is left of jobs; empty if nothing is.
  std::string left_over() const;

  // runtime::context
  const core::peer_id& self() const override { return home_.id; }
  caf::actor_system& system() override { return *system_; }
  runtime::link_hub& links() override { return *watched_; }
  runtime::device_queue& device() override { return *device_; }
  runtime::device_queue& reductions() override { return *reductions_; }
  runtime::device_queue& disk() override { return *disk_; }
  runtime::store& blobs() override { return *store_; }
  runtime::job_log& log() override { return *journal_; }
  std::filesystem::path data_dir() const override { return home_.folder; }
  std::shared_ptr<const core::view> view() const override { return view_; }
  std::shared_ptr<const core::plan> plan() const override { return plan_; }
  void send(const core::peer_id& to, core::job_message message) override;
  void send_role(const core::peer_id&, const std::string&,
                 std::vector<std::byte>) override {}
  const runtime::role_table& roles() const override { return roles_; }
  void bind_role(const std::string&, caf::actor) override {}
  void propose_job_state(core::job_id job, core::job_state state,
                         std::uint64_t done_step, core::epoch since,
                         const std::string& cause) override;
  void propose_arrived(core::job_id job, core::epoch since) override;
  void propose_retry(core::job_id job, core::epoch since) override;
  void
  propose_expulsion(const core::peer_id& peer, core::epoch number) override;
  void hung(const std::string& why) override;
  void fetch_blob(const core::blob_digest& digest,
                  std::vector<core::peer_id> holders,
                  std::function<void(std::error_code)> done) override;
  std::uint64_t blob_bytes_moved() const override {
    return exchange_->moved_bytes();
  }
  void released() override;
  void say(const std::string& line) override;

  /// What reaches a stopped process waits; so many bytes fit into sockets.
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

  // runtime::message_handler; no peer of the simulation sends the last five.
  void take(const peer& from, core::cluster::message&& m) override;
  void take(const peer& from, core::job_message&& m) override;
  void take(const peer& from, runtime::link_credit&& m) override;
  void take(const peer& from, runtime::blob_request&& m) override;
  void take(const peer& from, runtime::blob_chunk&& m) override;
  void take(const peer&, runtime::paired_address&&) override {}
  void take(const peer&, runtime::role_message&&) override {}
  void take(const peer&, runtime::client_request&&) override {}
  void take(const peer&, runtime::client_reply&&) override {}
  void take(const peer&, runtime::link_probe&&) override {}

  /// Later, if this process still lives then.
  void later(nanoseconds delay, work what);
  void begin_piece(sim_queue& q, nanoseconds mean);
  void end_piece(sim_queue& q);
  void pulse();
  void check_limits();
  /// Fails the run if there are more than may be.
  void check_most(std::size_t are, std::size_t most, const char* of_what);
  void run_actors();
  void wake_in_time();
  std::error_code
  transmit(const core::peer_id& to, const runtime::envelope& what, bool lossy);
  void act(const core::cluster::action& a);
  void carry_out(core::cluster::actions& ready);
  void write(core::cluster::actions& ready);
  void written(const core::cluster::outbox::write& w);
  void store(const core::cluster::outbox::write& w);
  void adopt(const core::cluster::new_view& v);

  shoal_world& world_;
  machine& home_;
  std::shared_ptr<bool> lives_ = std::make_shared<bool>(true);
  bool dead_ = false;
  bool stopped_ = false;
  bool leaving_ = false;
  bool released_ = false;
  std::vector<work> waiting_;
  bool inside_ = false;
  core::nanoseconds tick_at_ = 0;
  core::nanoseconds wake_at_ = 0;

  runtime::role_table roles_;
  std::unique_ptr<kernels::backend> backend_;
  std::unique_ptr<sim_queue> device_, reductions_, disk_;
  std::unique_ptr<sim_store> store_;
  /// Of what travels over links, and of gradients.
  std::shared_ptr<counted_memory> memory_ = std::make_shared<counted_memory>();
  std::unique_ptr<runtime::job_journal> journal_;
  std::unique_ptr<runtime::link_service> links_;
  std::unique_ptr<watched_links> watched_;
  std::unique_ptr<transport::loopback::fabric> fabric_;
  std::unique_ptr<runtime::blob_exchange> exchange_;
  runtime::gate gate_;
  std::optional<core::cluster::membership> core_;
  std::optional<core::cluster::outbox> outbox_;
  std::shared_ptr<const core::view> view_;
  std::shared_ptr<const core::plan> plan_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  caf::scheduler::test_coordinator* scheduler_ = nullptr;
  caf::actor supervisor_;
  std::size_t actors_at_rest_ = 0;
};

} // namespace shoal::sim
