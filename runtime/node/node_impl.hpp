// runtime/node/node_impl.hpp -- the parts of a node and how they are wired.
//
//   fabrics --envelopes--> wiring --events--> membership actor --actions--+
//      ^                    |  \--> exchange, actors, control             |
//      +------ send --------+<------------- new view: plan, roles --------+
//
// What makes the parts one peer is node_wiring.hpp; here is what people and
// clients see of it. Each part tells the node by an interface, which is
// implemented here; what the node keeps beside its parts is in state/, with
// locks of its own.
//
// Split: node.cpp (parts: start and end), node_views.cpp (mesh_handler,
// membership_handler, node_host, control_handler),
// node_others.cpp (other peers), node_admission.cpp (keys, invites,
// revocations). Only these include it.
#pragma once

#include "runtime/control/control.hpp"
#include "runtime/discovery/address_finder.hpp"
#include "runtime/discovery/address_watcher.hpp"
#include "runtime/discovery/discovery.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "runtime/node/membership_actor.hpp"
#include "runtime/node/mesh.hpp"
#include "runtime/node/node.hpp"
#include "runtime/node/node_wiring.hpp"
#include "runtime/node/profile_keeper.hpp"
#include "runtime/node/setup.hpp"
#include "runtime/node/state/known_nodes.hpp"
#include "runtime/node/state/node_life.hpp"
#include "runtime/node/state/waiting_requests.hpp"
#include "runtime/node/status.hpp"
#include "runtime/observe/recent_lines.hpp"
#include "runtime/observe/timeline.hpp"
#include "runtime/store/exchange.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <atomic>
#include <mutex>
#include <optional>

namespace shoal::runtime {

/// How often full queues are tried again and time limits looked at.
inline constexpr std::chrono::milliseconds pulse_period{100};
/// How often links are looked at for the profile.
inline constexpr std::chrono::seconds look_period{1};

class node::impl final : public mesh_handler,
                         public membership_handler,
                         public node_host,
                         public control_handler,
                         public discovery_handler,
                         public finder_handler,
                         public address_handler {
public:
  impl(node_config config, role_table roles);
  ~impl() override;

  // node.cpp: life
  void leave(std::chrono::milliseconds deadline, bool drain);

  const std::string& address() const noexcept { return address_; }

private:
  friend class node;

  // node.cpp
  void start_services();
  void start_wiring();
  void start_membership();
  void start_discovery();
  void start_finder();
  void start_watcher(std::vector<std::string> told);
  void require_threads() const;
  void start_parts();
  void tear_down();
  void end(const std::string& why);
  void look_at_profile();

  // node_admission.cpp
  void admit(const core::view& v);

  // node_others.cpp
  void say_if(const known_nodes::line& line);

  // node_views.cpp
  static std::int64_t unix_ms();
  static core::nanoseconds steady_ns();
  std::shared_ptr<const core::view> view() const { return wiring_->view(); }

  // mesh_handler
  void up(const core::peer_id& peer, std::uint64_t instance) override;
  void down(const core::peer_id& peer) override;
  void connect_failed(const std::string& address, std::error_code why) override;
  void reached(const std::string& address, const core::peer_id& peer) override;
  void
  refused(transport::tls::refusal why, const std::string& address) override;
  void take(const core::peer_id& from, core::cluster::message&& m) override {
    wiring_->take(from, std::move(m));
  }
  void take(const core::peer_id& from, core::job_message&& m) override {
    wiring_->take(from, std::move(m));
  }
  void take(const core::peer_id& from, blob_request&& m) override {
    wiring_->take(from, std::move(m));
  }
  void take(const core::peer_id& from, blob_chunk&& m) override {
    wiring_->take(from, std::move(m));
  }
  void take(const core::peer_id& from, role_message&& m) override {
    wiring_->take(from, std::move(m));
  }
  void take(const core::peer_id& from, client_reply&& m) override;
  void take(const core::peer_id& from, client_request&& m) override;
  void client_gone(const core::peer_id& client) override;

  // membership_handler
  void send(const std::vector<core::peer_id>& to,
            const core::cluster::message& what) override {
    wiring_->send(to, what);
  }
  void connect(const std::string& address) override { mesh_->connect(address); }
  void disconnect(const core::peer_id& peer) override { mesh_->drop(peer); }
  void adopt(const core::cluster::new_view& v) override { wiring_->adopt(v); }
  void waiting(const core::cluster::waiting_for& w) override;
  void left(bool clean) override;
  void shut_out() override;
  void rejected(const core::cluster::rejected& r) override;
  void use_keys(const core::cluster::key_record& keys) override;
  void stepped(core::cluster::phase p,
               std::vector<core::peer_id> reachable) override;

  // node_host
  void tell(core::cluster::event e) override;
  void hear(const core::peer_id& from, core::cluster::message&& m) override;
  core::plan make_plan(const core::view& v) override;
  void
  adopting(const core::view* before,
           const std::shared_ptr<const core::view>& now, bool member) override;
  void adopted(const core::view& now, bool member) override;
  bool in_quorum() const override;
  bool release() override;
  void worked(core::job_id job, core::nanoseconds busy) override;
  void hung(const std::string& why) override;
  void say(const std::string& line) override;
  timeline& trace() override { return *timeline_; }

  // control_handler
  job_journal& journal() override { return *journal_; }
  store& blobs() override { return *store_; }
  std::string status() const override;
  std::string describe(core::job_id job) const override;
  std::string lines(const ask_lines& r, std::uint64_t& next) const override;
  meant_peer find(const std::string& word) const override;
  void leave(bool drain) override { leave(leave_deadline, drain); }
  void submit(std::uint64_t token, core::job_entry job) override;
  void remove_job(std::uint64_t token, core::job_id job) override;
  void recover(std::uint64_t token) override;
  void invite(std::uint64_t token, const make_invite& r) override;
  void redeem(std::uint64_t token, const use_invite& r) override;
  void revoke_peer(std::uint64_t token, const revoke& r) override;
  void hand_on(std::uint64_t token, const core::peer_id& peer,
               client_request&& r) override;
  std::string stop_job(core::job_id job, bool drain) override;
  std::string wait_no_longer(core::job_id job) override;
  std::string offer(const offer_checkpoint& r) override;
  void fetch(const core::blob_digest& digest,
             std::function<void(std::error_code)> done) override;
  void send(const core::peer_id& to, const client_reply& reply) override;

  // discovery_handler, finder_handler, address_handler
  bool connected(std::uint64_t sender) const override;
  void found(const std::string& address) override;
  void counted(const beacon_counts& counts) override;
  void strange(const std::string& host) override;
  void listed(const std::string& address) override;
  void addresses_changed(std::vector<std::string> addresses) override;

  void log_waiting(const std::string& text);
  /// To the supervisor, about a job that runs. @returns why not, or nothing
  template <class Message>
  std::string tell_job(core::job_id job, Message m);
  status_input now() const;

  recent_lines recent_; ///< what config_.observer tells
  node_config config_;
  role_table roles_;
  node_setup setup_;
  core::peer_id self_{};
  std::string address_;
  core::device_profile profile_;       ///< as measured at start
  std::unique_ptr<timeline> timeline_; ///< before all that is traced
  std::unique_ptr<profile_keeper> keeper_;
  std::chrono::steady_clock::time_point next_look_{}; ///< the pulse's
  caf::actor_system_config system_config_;
  std::unique_ptr<store> store_;
  std::unique_ptr<device_queue> device_;
  std::unique_ptr<device_queue> reductions_;
  std::unique_ptr<device_queue> disk_;
  std::unique_ptr<device_queue> records_; ///< a vote waits for no checkpoint
  std::unique_ptr<job_journal> journal_;
  std::unique_ptr<blob_exchange> exchange_;
  std::unique_ptr<mesh> mesh_;
  std::unique_ptr<node_wiring> wiring_;
  std::unique_ptr<control> control_;
  std::atomic<control*> control_ready_{nullptr};
  std::unique_ptr<discovery> discovery_;
  std::unique_ptr<address_finder> finder_;
  std::unique_ptr<address_watcher> watcher_;
  std::unique_ptr<caf::actor_system> system_;
  caf::actor membership_;
  caf::actor pulse_;
  std::shared_ptr<std::atomic<std::size_t>> pending_events_;

  // Of the membership actor's thread.
  core::cluster::key_record keys_;
  bool keys_changed_ = false;             ///< since the last view
  waiting_requests::adopted_view waited_; ///< for the view that is adopted
  bool ready_ = false;                    ///< was a member once

  mutable std::mutex mutex_; ///< guards what follows
  core::cluster::phase phase_ = core::cluster::phase::created;
  std::vector<core::peer_id> reachable_;

  // TLS's progress thread.
  std::optional<std::chrono::steady_clock::time_point> duplicate_since_;
  std::chrono::steady_clock::time_point duplicate_at_{};

  waiting_requests requests_;
  std::unique_ptr<known_nodes> known_;
  std::unique_ptr<node_life> life_; ///< ends all of the above: it goes first
};

} // namespace shoal::runtime
