// runtime/node/node_impl.hpp -- the parts of a node and how they are wired.
//
//   fabrics --envelopes--> wiring --events--> membership actor --actions--+
//      ^                    |  \--> exchange, actors, control             |
//      +------ send --------+<------------- new view: plan, roles --------+
//
// node_wiring.hpp makes the parts one peer; requests/ answers users and clients.
// Each part calls the node by an interface that is implemented here, mostly by
// calling another part. State that belongs to no part is in state/, with locks
// of its own.
//
// Split: node.cpp (parts: start and end), node_views.cpp (the interfaces). Only
// these include it.
#pragma once

#include "runtime/control/control.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/discovery/address_finder.hpp"
#include "runtime/discovery/address_watcher.hpp"
#include "runtime/discovery/discovery.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "runtime/node/membership_actor.hpp"
#include "runtime/node/mesh.hpp"
#include "runtime/node/node.hpp"
#include "runtime/node/node_wiring.hpp"
#include "runtime/node/profile_keeper.hpp"
#include "runtime/node/requests/admission.hpp"
#include "runtime/node/requests/client_service.hpp"
#include "runtime/node/setup.hpp"
#include "runtime/node/state/known_nodes.hpp"
#include "runtime/node/state/node_life.hpp"
#include "runtime/node/state/waiting_requests.hpp"
#include "runtime/node/status/status.hpp"
#include "runtime/observe/recent_lines.hpp"
#include "runtime/observe/timeline.hpp"
#include "runtime/store/exchange.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <atomic>
#include <mutex>

namespace shoal::runtime {

/// How often full queues are tried again and time limits looked at.
inline constexpr std::chrono::milliseconds pulse_period{100};
/// How often links are looked at for the profile, and each part is asked for a
/// sign of life.
inline constexpr std::chrono::seconds look_period{1};

/// A node's lines contain names and paths of others: makes them safe to show,
/// for the program around the node and for readers of its last lines.
class shown_observer final : public node_observer {
public:
  /// @param to may be null
  /// @pre both outlive this object
  shown_observer(node_observer* to, recent_lines& recent)
    : to_(to), recent_(recent) {}

  void ready(const std::string& line) override {
    pass(&node_observer::ready, line);
  }
  void agreed(const core::view& view, bool member) override {
    if (to_)
      to_->agreed(view, member);
  }
  void waiting(const std::string& line) override {
    pass(&node_observer::waiting, line);
  }
  void say(const std::string& line) override {
    pass(&node_observer::say, line);
  }
  void stopped(const std::string& why) override {
    pass(&node_observer::stopped, why);
  }
  bool leave_asked() override { return to_ && to_->leave_asked(); }

private:
  void pass(void (node_observer::*event)(const std::string&),
            const std::string& line) {
    std::string text = core::shown(line);
    if (to_)
      (to_->*event)(text);
    recent_.add(std::move(text));
  }

  node_observer* to_;
  recent_lines& recent_;
};

class node::impl final : public life_handler,
                         public mesh_handler,
                         public blob_sender,
                         public membership_handler,
                         public node_host,
                         public admission_host,
                         public client_host,
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
  void start_requests();
  void start_wiring();
  void start_membership();
  void start_discovery();
  void start_finder();
  void start_watcher(std::vector<std::string> told);
  void require_threads() const;
  void start_parts();
  void look_at_profile();
  void look_for_life();
  void look_at_data_dir();

  // node_views.cpp
  void say_if(const known_nodes::line& line);
  static std::int64_t unix_ms();
  static core::nanoseconds steady_ns();
  std::shared_ptr<const core::view> view() const override {
    return wiring_->view();
  }

  // life_handler
  bool is_needed() override;
  void end_parts() override;
  void stopped(const std::string& why) override;
  void silent(const std::string& part) override;
  void hangs() override;

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
  void take(const core::peer_id& from, core::serve_message&& m) override {
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
  void take(const core::peer_id& from, client_reply&& m) override {
    clients_->take(from, std::move(m));
  }
  void take(const core::peer_id& from, client_request&& m) override;
  void client_gone(const core::peer_id& client) override;

  // blob_sender
  std::error_code
  send_request(const core::peer_id& to, const blob_request& request) override {
    return mesh_->send(to, envelope(request));
  }
  std::error_code
  send_chunk(const core::peer_id& to, blob_chunk chunk) override {
    return mesh_->send(to, envelope(std::move(chunk)));
  }
  void sent_wrong(const core::peer_id& holder, const core::blob_digest& blob,
                  std::size_t times, bool given_up) override;

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
  void shut_out() override { admission_->shut_out(); }
  void rejected(const core::cluster::rejected& r) override {
    clients_->rejected(r);
  }
  void use_keys(const core::cluster::key_record& keys) override {
    admission_->use_keys(keys);
  }
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
  void worked(const core::island_id& id, core::nanoseconds busy) override;
  void offer_disk(std::uint64_t bytes, bool refused) override;
  void disks_refuse(const core::island_id& id,
                    const std::vector<core::peer_id>& at) override;
  void hung(const std::string& why) override;
  void add_metrics(metric_page& to) const override;
  void serves(const std::vector<core::served_load>& models) override;
  void say(const std::string& line) override;
  timeline& trace() override { return *timeline_; }

  // admission_host, client_host: view(), tell() and say() are above
  void answer(std::uint64_t token, outcome o) override;
  std::string listener() const override { return address_; }
  void use(transport::tls::keyring ring, bool others_go) override;
  bool among_others() const override;
  bool ending() const override { return life_->ending(); }
  void end(const std::string& why) override;
  std::string status() const override;
  std::string describe(core::job_id job) const override;
  void leave(bool drain) override {
    if (!drain || !observer_.leave_asked())
      leave(leave_deadline, drain);
  }
  std::string waits() const override;
  caf::actor supervisor() const override;
  std::error_code send(const core::peer_id& to, envelope message) override;
  std::vector<core::peer_id> peers() const override { return mesh_->peers(); }

  // discovery_handler, finder_handler, address_handler
  bool connected(std::uint64_t sender) const override;
  void found(const std::string& address) override;
  void counted(const beacon_counts& counts) override;
  void strange(const std::string& host) override;
  void listed(const std::string& address) override;
  void addresses_changed(std::vector<std::string> addresses) override;

  std::string what_to_do(const core::cluster::waiting_for& w) const;
  void log_waiting(const std::string& text);
  status_input now() const;

  recent_lines recent_;     ///< what observer_ tells
  shown_observer observer_; ///< to that of the config
  node_config config_;
  role_table roles_;
  node_setup setup_;
  core::peer_id self_{};
  std::string address_;
  core::device_profile profile_;       ///< as measured at start
  std::unique_ptr<timeline> timeline_; ///< before all that is traced
  std::unique_ptr<profile_keeper> keeper_;
  std::chrono::steady_clock::time_point next_look_{}; ///< the pulse's
  /// Of those without which a node is only there to be waited for.
  struct watched_parts {
    std::shared_ptr<life_sign> timer, membership, supervisor, tls, links;
  } signs_;
  std::atomic<bool> looks_at_data_dir_{false}; ///< or has found it lost
  bool waits_for_fetch_ = false;               ///< has been said; the reaper's
  caf::actor_system_config system_config_;
  std::unique_ptr<store> store_;
  std::unique_ptr<device_queue> device_;
  std::unique_ptr<device_queue> reductions_;
  std::unique_ptr<device_queue> prompts_;
  std::unique_ptr<device_queue> masks_;
  std::unique_ptr<device_queue> disk_;
  std::unique_ptr<device_queue> records_; ///< a vote waits for no checkpoint
  std::unique_ptr<job_journal> journal_;
  std::unique_ptr<blob_links> blob_links_;
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

  bool ready_ = false; ///< was a member once; of the membership actor's thread

  mutable std::mutex mutex_; ///< guards what follows
  core::cluster::phase phase_ = core::cluster::phase::created;
  std::vector<core::peer_id> reachable_;
  std::string waits_; ///< the last line about a quorum, while there is none
  std::map<core::island_id, std::vector<core::peer_id>> refusing_disks_;
  std::vector<core::served_load> serving_; ///< what the gateway has reported

  waiting_requests requests_;
  std::unique_ptr<known_nodes> known_;
  std::unique_ptr<admission> admission_;
  std::unique_ptr<client_service> clients_;
  std::unique_ptr<node_life> life_; ///< ends all of the above: it goes first
};

} // namespace shoal::runtime
