// runtime/core/cluster/membership_impl.hpp -- the state behind membership.
//
// Owns the parts and puts them together. Split by mechanism: membership.cpp
// (events, time), views.cpp (adopting and proposing), contact.cpp (what peers
// say), joining.cpp (getting in and letting in), leaving.cpp, force.cpp (which
// of two shoals goes on). Only these include it.
#pragma once

#include "runtime/core/cluster/agreement.hpp"
#include "runtime/core/cluster/detector.hpp"
#include "runtime/core/cluster/key_exchange.hpp"
#include "runtime/core/cluster/local/departure.hpp"
#include "runtime/core/cluster/local/dialer.hpp"
#include "runtime/core/cluster/local/former_shoals.hpp"
#include "runtime/core/cluster/local/rival_shoals.hpp"
#include "runtime/core/cluster/local/stalled_members.hpp"
#include "runtime/core/cluster/local/times.hpp"
#include "runtime/core/cluster/membership.hpp"
#include "runtime/core/cluster/wishes.hpp"

namespace shoal::core::cluster {

/// A forwarded wish that is not repeated is forgotten.
inline constexpr nanoseconds wish_life = 1500 * milliseconds;
/// How long a confirmed death waits for other members that have accusers, but
/// too few yet.
inline constexpr nanoseconds unstable_patience = 500 * milliseconds;
/// Jobs go on without a lost member. If that member is restarted at once, its
/// return would interrupt them again in the middle of the change: there would
/// be yet another plan, and the state being moved would be moved in vain. So a
/// former member is admitted this long after the loss. A view that comes for
/// another reason, or for the loss itself, admits it at once. There is no hold
/// while a job waits for members.
inline constexpr nanoseconds join_hold = 2000 * milliseconds;
/// How long a doubt lasts whether we are the only process of our identity, if
/// it is not repeated: longer than the pause between two dials.
inline constexpr nanoseconds doubt_life = dial_pause_max + 500 * milliseconds;
/// A shoal made by force numbers its views this far above those of the shoal
/// that it replaces, which may go on elsewhere. So no two views, and no two
/// assignments of one job, have the same number in both, and the new shoal's
/// numbers count as newer. A view takes a fifth of a second: the other shoal
/// would have to change without a pause for two days to reach them.
inline constexpr epoch force_skip = 1'000'000;
inline constexpr const char* no_room =
  "the shoal's members and jobs together are too large for one view";
struct membership::impl {
  /// Peers that a new view no longer contains.
  struct parting {
    std::vector<peer_id> expelled, others;
  };

  explicit impl(config c);

  // membership.cpp
  void step(const event& e, nanoseconds now, actions& out);
  void on(const start& e);
  void on(const peer_up& e);
  void on(const peer_down& e);
  void on(const connect_failed& e);
  void on(const doubted&) { doubted_until_ = now_ + doubt_life; }
  void on(const received& e);
  void on(const tick&) {}
  void on(const submit_job& e);
  void on(const withdraw_job& e);
  void on(const set_job_state& e);
  void on(const remove_job& e);
  void on(const drain_job& e);
  void on(const scale_job& e);
  void on(const retry_job& e);
  void on(const expel_member& e);
  void on(const serve_version& e);
  void on(const job_arrived& e);
  void on(const cluster::leave& e);
  void on(const leave_now& e);
  void on(const update_profile& e);
  void on(const update_addresses& e);
  void on(const revoke_peer& e);
  void on(const add_invite& e);
  void on(const redeem_invite& e);
  void on(const withdraw_invite& e);
  bool quiet(const event& e) const;
  bool may_wait(const event& e) const;
  void settle();
  void follow_key();
  void refresh_offer();
  void say_waiting();
  void ask_for_tick();
  void ask_for_tick_at(nanoseconds at);
  nanoseconds pace() const;

  // views.cpp
  void adopt(view v);
  void install(view v, bool seated_now);
  [[nodiscard]] view_record record() const;
  parting who_parts(const view& next, bool seated_next) const;
  void found_alone(std::vector<job_entry> jobs = {},
                   std::vector<assignment> previous = {},
                   std::vector<superseded_shoal> superseded = {});
  view alone(std::vector<job_entry> jobs, std::vector<assignment> previous,
             std::vector<superseded_shoal> superseded);
  void take_decision();
  void refresh_wishes();
  void refresh_losses();
  void refresh_seats();
  void refresh_cuts();
  void drop_settled();
  void drop_ends();
  void drop_outdated();
  std::size_t rank() const;
  nanoseconds wishes_due() const;
  void hold_joins(const view& before);
  void note_outage(view& next) const;
  void propose();
  void forward_changes();
  void wish(change c);
  void update_phase();
  bool may_be_a_copy() const;
  std::vector<peer_id> reachable() const;

  // contact.cpp
  situation here() const;
  void connect_to(const dialer::addresses& all);
  hello make_hello() const;
  void say_hellos();
  void end_if_shut_out();
  support supported_by() const;
  void heard(const peer_id& from, const shoal_id& shoal, epoch number);
  bool believable(const peer_id& from, const view& v) const;
  bool tell_former(const peer_id& to, const shoal_id& shoal, epoch number);
  void on(const discovered& e);
  void on(const reached& e);
  void on(const turned_away& e);
  void on(const peer_id& from, const hello& m);
  void on(const peer_id& from, const heartbeat& m);
  void on(const peer_id& from, const heartbeat_ack& m);
  void on(const peer_id& from, const gossip& m);
  void on(const peer_id& from, const decided& m);
  void on(const peer_id& from, const view_request& m);
  void on(const peer_id& from, const key_offer& m);
  void on(const peer_id& from, const key_held& m);
  void on(const peer_id& from, const key_request& m);
  template <class Message>
  void vote(const peer_id& from, const Message& m);
  void on(const peer_id& from, const prepare& m);
  void on(const peer_id& from, const promise& m);
  void on(const peer_id& from, const accept& m);
  void on(const peer_id& from, const accepted& m);
  void on(const peer_id& from, const refused& m);

  // joining.cpp
  join_request make_request(const shoal_id& into) const;
  void ask_for_entry();
  void on(const peer_id& from, const join_request& m);
  void on(const peer_id& from, const join_answer& m);
  void on(const peer_id& from, const change_request& m);

  // force.cpp
  void on(const recover_force& e);
  rival_shoals rivals() const;
  void choose_merge();
  void say_apart(const contact& other);
  void follow_superseding();
  void bring_jobs(const view& before);

  // leaving.cpp
  void refresh_leaving();
  void linger();
  void carry_out(departure_step step);
  void hand_on(bool all);
  void hand_on_if_due();
  void keep_former(const view& v);
  void go(bool clean, bool erase);
  void forget_shoal();

  void send_to(const peer_id& to, message m) {
    out_->push_back(send{{to}, std::move(m)});
  }
  void say(std::string text) { out_->push_back(log{std::move(text)}); }

  config config_;
  random random_;
  cluster::phase phase_ = phase::created;
  view view_;
  bool seated_ = false;
  std::vector<job_entry> given_up_; ///< jobs of the shoal that dissolved last
  std::vector<job_id> given_up_removed_; ///< those it had taken off its list
  agreement agreement_;
  detector detector_;
  wishes wishes_;
  former_shoals former_;
  stalled_members stalled_;
  contacts contacts_;
  dialer dialer_;
  key_exchange key_exchange_;
  departure departure_;

  bool warned_apart_ = false;
  bool warned_far_ = false;
  std::string refusal_; ///< the last that was reported
  nanoseconds join_not_before_ = 0;
  nanoseconds started_at_ = 0;
  nanoseconds doubted_until_ = 0;
  nanoseconds homeless_since_ = 0;
  nanoseconds retry_at_ = 0;
  std::uint64_t attempts_ = 0;
  nanoseconds say_waiting_at_ = time_max;
  nanoseconds tick_asked_ = time_max;
  nanoseconds settled_at_ = 0;

  // Of the step in progress.
  nanoseconds now_ = 0;
  actions* out_ = nullptr;
};

} // namespace shoal::core::cluster
