// runtime/node/node_impl.hpp -- the parts of a node and how they are wired.
//
//   fabrics --envelopes--> node --events--> membership actor --actions--+
//      ^                    |  \--> exchange, links, control            |
//      +------ send --------+<----------- new view: plan, roles --------+
//
// Split: node.cpp (life), node_world.cpp (context), node_views.cpp (what the
// membership actor and clients cause), node_lines.cpp (last lines),
// node_admission.cpp (keys, invites, revocations). Only these include it.
#pragma once

#include "runtime/job_journal.hpp"
#include "runtime/node.hpp"
#include "runtime/node/address_watcher.hpp"
#include "runtime/node/beacon_filter.hpp"
#include "runtime/node/control.hpp"
#include "runtime/node/membership_actor.hpp"
#include "runtime/node/mesh.hpp"
#include "runtime/node/profile_keeper.hpp"
#include "runtime/node/recent_lines.hpp"
#include "runtime/node/setup.hpp"
#include "runtime/node/status.hpp"
#include "runtime/store/exchange.hpp"
#include "runtime/timeline.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace shoal::runtime {

class address_finder;
class discovery;

/// From the start of the end to its last line; then the process exits, since
/// whatever hangs can not be trusted with data.
inline constexpr std::chrono::seconds shutdown_max{15};
/// The same where work is known to hang: the flight record can be written.
inline constexpr std::chrono::seconds hung_shutdown_max{3};
/// How often full queues are tried again and time limits looked at.
inline constexpr std::chrono::milliseconds pulse_period{100};
/// How often links are looked at for the profile.
inline constexpr std::chrono::seconds look_period{1};

class node::impl final : public context {
public:
  impl(node_config config, role_table roles);
  ~impl() override;

  // node.cpp: life
  void leave(std::chrono::milliseconds deadline, bool drain);
  bool wait_stopped(std::chrono::milliseconds timeout);
  void stop();

  // node_world.cpp: context
  const core::peer_id& self() const override { return self_; }
  caf::actor_system& system() override { return *system_; }
  link_hub& links() override { return mesh_->links(); }
  device_queue& device() override { return *device_; }
  device_queue& reductions() override { return *reductions_; }
  device_queue& disk() override { return *disk_; }
  store& blobs() override { return *store_; }
  job_log& log() override { return *journal_; }
  std::filesystem::path data_dir() const override { return setup_.data_dir; }
  std::shared_ptr<const core::view> view() const override;
  std::shared_ptr<const core::plan> plan() const override;
  void send(const core::peer_id& to, core::job_message message) override;
  void send_role(const core::peer_id& to, const std::string& role,
                 std::vector<std::byte> bytes) override;
  const role_table& roles() const override { return roles_; }
  void bind_role(const std::string& address, caf::actor actor) override;
  void worked(core::job_id job, core::nanoseconds busy) override;
  void propose_job_state(core::job_id job, core::job_state state,
                         std::uint64_t done_step, core::epoch since,
                         const std::string& cause = {}) override;
  void propose_retry(core::job_id job, core::epoch since) override;
  void
  propose_expulsion(const core::peer_id& peer, core::epoch number) override;
  bool in_quorum() const override;
  void hung(const std::string& why) override;
  void propose_arrived(core::job_id job, core::epoch since) override;
  void fetch_blob(const core::blob_digest& digest,
                  std::vector<core::peer_id> holders,
                  std::function<void(std::error_code)> done) override;
  std::uint64_t blob_bytes_moved() const override {
    return exchange_->moved_bytes();
  }
  void released() override;
  void say(const std::string& line) override;
  timeline& trace() override { return *timeline_; }

  const std::string& address() const noexcept { return address_; }

private:
  friend class node;

  /// A client waits for a view: with its job, of another shoal, or whatever
  /// `reached` says, which fills the answer.
  struct wanted_view {
    core::job_id job = 0; ///< or another tag that rejected{} names
    core::shoal_id not_shoal{};
    std::function<bool(const core::view& v, outcome& o)> reached;
  };

  /// A job that came before the first view; nobody waits for it after `until`.
  struct early_job {
    std::uint64_t token = 0;
    core::job_entry job;
    std::chrono::steady_clock::time_point until{};
  };
  static constexpr std::size_t early_jobs_max = 64;

  /// A peer was asked for its last lines.
  struct asked_lines {
    core::peer_id peer{};
    std::chrono::steady_clock::time_point until{}; ///< then nobody waits
  };

  // node.cpp
  void start_services();
  void start_membership();
  void start_discovery();
  void start_finder();
  void start_watcher(std::vector<std::string> told);
  void require_threads() const;
  void start_parts();
  void reap();
  void watch_shutdown();
  void begin_shutdown();
  void end_shutdown();
  void tear_down();
  void end(const std::string& why);

  // node_world.cpp
  void look_at_profile();

  // node_admission.cpp
  void admit(const core::view& v);
  void use_keys(const core::cluster::key_record& keys);
  void invite(std::uint64_t token, const make_invite& r);
  void redeem(std::uint64_t token, const use_invite& r);
  void revoke_peer(std::uint64_t token, const revoke& r);
  void refused(transport::tls::refusal why, const std::string& address);
  bool want(std::uint64_t token, wanted_view w);

  // node_views.cpp
  membership_hooks make_membership_hooks();
  control_hooks make_control_hooks();
  mesh_hooks make_mesh_hooks();
  void tell_cluster(core::cluster::event e);
  void take(const core::peer_id& from, envelope&& e);
  void adopt(const core::cluster::new_view& v);
  void start_roles();
  void show_waiting(const core::cluster::waiting_for& w);
  void log_waiting(const std::string& text);
  void submit(std::uint64_t token, core::job_entry job);
  void remove_job(std::uint64_t token, core::job_id job);
  void recover(std::uint64_t token);
  std::string stop_job(core::job_id job, bool drain);
  /// To the supervisor, about a job that runs. @returns why not, or nothing
  template <class Message>
  std::string tell_job(core::job_id job, Message m);
  void rejected(const core::cluster::rejected& r);
  void lines(std::uint64_t token, const ask_lines& r);
  void take_lines(const core::peer_id& from, client_reply&& reply);
  status_input now() const;
  std::string describe(core::job_id job) const;
  caf::actor role(const std::string& name) const;
  void has_left(bool clean);

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
  bool keys_changed_ = false; ///< since the last view

  mutable std::mutex mutex_; ///< guards what follows
  std::shared_ptr<const core::view> view_;
  std::shared_ptr<const core::plan> plan_;
  core::cluster::phase phase_ = core::cluster::phase::created;
  std::vector<core::peer_id> reachable_;
  /// Of this node's program, and of connected peers' as hello told.
  std::map<core::peer_id, std::string> versions_;
  /// What connected peers last said of their shoal: perhaps another.
  std::map<core::peer_id, shoal_of_peer> strangers_;
  std::map<std::string, caf::actor> actors_; ///< of roles
  std::map<std::string, caf::actor> bound_;  ///< of placed roles
  std::map<std::uint64_t, wanted_view> wanted_;
  std::vector<early_job> early_;                     ///< until the first view
  std::map<std::uint64_t, asked_lines> asked_lines_; ///< by token
  bool ready_ = false;
  beacon_counts beacons_;

  mutable std::mutex life_mutex_; ///< guards what follows
  std::condition_variable life_;
  bool failed_ = false; ///< it ends because it cannot go on
  bool hung_ = false;   ///< and will not end in order
  std::optional<std::chrono::steady_clock::time_point> duplicate_since_;
  std::chrono::steady_clock::time_point duplicate_at_{};
  bool leaving_ = false;
  bool released_ = false; ///< no job needs this peer
  bool ending_ = false;   ///< stop as soon as possible
  bool started_ = false;  ///< all parts are there: the reaper may end them
  bool stopped_ = false;
  std::string why_;
  /// From when on the parts are taken down; and whether they are.
  std::optional<std::chrono::steady_clock::time_point> shutdown_at_;
  bool down_ = false;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  std::thread reaper_;   ///< both are made first: the end needs no new thread
  std::thread watchdog_; ///< ends the process if the shutdown hangs
};

} // namespace shoal::runtime
