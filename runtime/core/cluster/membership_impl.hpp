// runtime/core/cluster/membership_impl.hpp -- the state behind membership.
//
// Split by mechanism: membership.cpp (events, time), views.cpp (adopting and
// proposing), contact.cpp (connections, hello, merging), joining.cpp (getting
// in and letting in), stalls.cpp (who is let in later), seeds.cpp (given
// addresses), leaving.cpp, force.cpp (a shoal in place of one without a
// quorum). Only these include it.
#pragma once

#include "runtime/core/cluster/agreement.hpp"
#include "runtime/core/cluster/detector.hpp"
#include "runtime/core/cluster/membership.hpp"
#include "runtime/core/cluster/wishes.hpp"

#include <map>
#include <set>

namespace shoal::core::cluster {

inline constexpr nanoseconds milliseconds = 1'000'000;
/// How often a request that got no answer is repeated.
inline constexpr nanoseconds retry_interval = 200 * milliseconds;
/// How often strangers hear of our shoal when nothing has changed.
inline constexpr nanoseconds hello_interval = 1000 * milliseconds;
/// A stranger that has said nothing for so long may be gone: we do not ask it.
inline constexpr nanoseconds hello_life = 3 * hello_interval;
/// A forwarded wish that is not repeated is forgotten.
inline constexpr nanoseconds wish_life = 1500 * milliseconds;
/// Deaths wait so long for others that have accusers, but too few yet.
inline constexpr nanoseconds unstable_patience = 500 * milliseconds;
/// Jobs go on without a member that was lost; one that is restarted at once
/// would stop them again in the middle of that, for another plan, with the
/// state that they are moving in vain. So who was no member any more is let in
/// so long after. A view that comes for another reason takes it along, and so
/// does the loss itself; and no job waits for members.
inline constexpr nanoseconds join_hold = 2000 * milliseconds;
/// A connection attempt without an answer counts as over.
inline constexpr nanoseconds dial_timeout = 3000 * milliseconds;
inline constexpr nanoseconds dial_pause_max = 2000 * milliseconds;
/// After so many failures, most of a minute, an address is tried less often:
/// whoever comes back there dials by itself.
inline constexpr int eager_dials = 30;
inline constexpr nanoseconds dial_pause_idle = 10'000 * milliseconds;
/// A doubt whether we are the only process of our identity lasts so long if it
/// is not repeated: longer than a pause between two dials.
inline constexpr nanoseconds doubt_life = dial_pause_max + 500 * milliseconds;
/// Those who come with us from a shoal that has dissolved have done so by then:
/// whoever is still missing may have to hear of its end from others.
inline constexpr nanoseconds former_patience = 10'000 * milliseconds;
inline constexpr const char* no_room =
  "the shoal's members and jobs together are too large for one view";
inline constexpr std::size_t links_max = 1088;
inline constexpr std::size_t dials_max = 1088;
/// In company an address that was given is tried again after this, then after
/// twice as long each time it leads nowhere. Among 1,000 members that all have
/// one dead seed it is dialled 17 times a second at most; two shoals that can
/// reach each other again meet within 75 s (a quarter more spreads the dials).
inline constexpr nanoseconds seed_pause = 5'000 * milliseconds;
inline constexpr nanoseconds seed_pause_max = 60'000 * milliseconds;
inline constexpr std::size_t seeds_max = 512;
inline constexpr std::size_t reached_max = 1088;
/// Addresses of members and some that were discovered; more are not listened to.
inline constexpr std::size_t barred_max = 1088;

/// What another shoal's cluster key is to ours.
enum class key_age { same, newer, older, unrelated };

struct membership::impl {
  /// A connected peer and what it last said of itself.
  struct link {
    std::uint64_t instance = 0;
    shoal_id shoal{};
    epoch number = 0;
    std::optional<hello> said;
    nanoseconds said_at = 0;
    nanoseconds hello_at = 0; ///< when to tell it ours again
  };

  /// An address that we connect to, or have tried.
  struct dial {
    nanoseconds next_at = 0;
    nanoseconds pending_until = 0; ///< 0: no attempt is in progress
    int failures = 0;
    bool once = false; ///< not tried again after a failure
  };

  /// When an address is tried again in company.
  struct seed {
    nanoseconds next_at = 0;
    nanoseconds pause = seed_pause;
  };

  /// A peer that has held up a job: until when it stays out, or since when it
  /// is back.
  struct stall {
    epoch since = 0; ///< the view that has expelled it
    nanoseconds until = 0;
    nanoseconds back_since = time_max; ///< time_max: it is out
  };

  /// Peers that a new view has no more.
  struct parting {
    std::vector<peer_id> expelled, others;
  };

  /// A new cluster key on its way to all but the peer to be revoked.
  struct offering {
    revoke_peer what;
    key_digest digest{};
    key_digest old_key{};
    std::vector<peer_id> held;     ///< by these members
    nanoseconds patient_until = 0; ///< then a quorum is enough
    nanoseconds until = 0;
    nanoseconds next_at = 0;
  };

  explicit impl(config c);

  // membership.cpp
  void step(const event& e, nanoseconds now, actions& out);
  void on(const start& e);
  void on(const peer_up& e);
  void on(const peer_down& e);
  void on(const connect_failed& e);
  void on(const turned_away& e);
  void on(const doubted&) { doubted_until_ = now_ + doubt_life; }
  void on(const received& e);
  void on(const tick&) {}
  void on(const submit_job& e);
  void on(const set_job_state& e);
  void on(const remove_job& e);
  void on(const retry_job& e);
  void on(const expel_member& e);
  void on(const job_arrived& e);
  void on(const cluster::leave& e);
  void on(const leave_now& e);
  void on(const update_profile& e);
  void on(const update_addresses& e);
  bool quiet(const event& e) const;
  bool may_wait(const event& e) const;
  void settle();
  void say_waiting();
  void ask_for_tick();
  void ask_for_tick_at(nanoseconds at);
  nanoseconds pace() const;

  // views.cpp
  const member* entry() const; ///< ours in the view, of any start
  bool current_entry() const;  ///< the entry is of this start
  bool i_vote() const;
  std::size_t running() const;
  void adopt(view v);
  void install(view v, bool seated_now);
  parting who_parts(const view& next, bool seated_next) const;
  void found_alone(std::vector<job_entry> jobs = {},
                   std::vector<assignment> previous = {},
                   std::vector<superseded_shoal> superseded = {});
  void take_decision();
  void refresh_wishes();
  void refresh_losses();
  void refresh_seats();
  void refresh_cuts();
  void drop_settled();
  void drop_outdated();
  std::size_t rank() const;
  nanoseconds wishes_due() const;
  void hold_joins(const view& before);
  void propose();
  void forward_changes();
  void wish(change c);
  void update_phase();
  bool may_be_a_copy() const;
  std::vector<peer_id> reachable() const;

  // contact.cpp
  hello make_hello() const;
  void say_hellos();
  void choose_merge();
  bool yields_to(const link& l);
  void say_apart(const link& l);
  const link* best_contact(peer_id* who) const;
  key_age age_of_key(const hello& said) const;
  void dial_now(const std::string& address, bool once);
  void dial_due();
  bool connected_to(const std::string& address) const;
  bool dial_is_open(const std::string& address) const;
  void end_if_shut_out();
  bool needs_admission() const;
  std::vector<std::string> wanted_addresses() const;
  void heard(const peer_id& from, const shoal_id& shoal, epoch number);
  bool believable(const peer_id& from, const view& v) const;
  bool tell_former(const peer_id& to, const shoal_id& shoal, epoch number);
  void on(const peer_id& from, const hello& m);
  void on(const peer_id& from, const heartbeat& m);
  void on(const peer_id& from, const heartbeat_ack& m);
  void on(const peer_id& from, const gossip& m);
  void on(const peer_id& from, const decided& m);
  void on(const peer_id& from, const view_request& m);
  template <class Message>
  void vote(const peer_id& from, const Message& m);
  void on(const peer_id& from, const prepare& m);
  void on(const peer_id& from, const promise& m);
  void on(const peer_id& from, const accept& m);
  void on(const peer_id& from, const accepted& m);
  void on(const peer_id& from, const refused& m);

  // seeds.cpp
  bool in_company() const;
  void try_seed(const std::string& address);
  void try_seeds();
  nanoseconds seeds_due() const;
  void on(const discovered& e);
  void on(const reached& e);

  // joining.cpp
  join_request make_request(const shoal_id& into) const;
  void ask_for_entry();
  void on(const peer_id& from, const join_request& m);
  void on(const peer_id& from, const join_answer& m);
  void on(const peer_id& from, const change_request& m);

  // stalls.cpp
  void note_stalls();
  bool stays_out(const peer_id& who) const;
  bool was_well(const peer_id& who) const;
  nanoseconds pause_of(const peer_id& who) const;

  // keys.cpp
  void on(const revoke_peer& e);
  void on(const add_invite& e);
  void on(const redeem_invite& e);
  void on(const peer_id& from, const key_offer& m);
  void on(const peer_id& from, const key_held& m);
  void on(const peer_id& from, const key_request& m);
  bool hold_key(const cluster_key& key);
  void keep_keys();
  void follow_key();
  void refresh_offer();
  bool offer_is_held() const;

  // force.cpp
  void on(const recover_force& e);
  std::vector<superseded_shoal> superseded() const;
  const superseded_shoal* supersedes_ours(const link& l) const;
  bool is_superseded_by_ours(const link& l) const;
  bool runs_what_we_lack(const link& l) const;
  bool came_back_since(epoch number) const;
  bool may_give_up_jobs(const link& l) const;
  const link* superseding_contact() const;
  void follow_superseding();
  void bring_jobs(const view& before);

  // leaving.cpp
  void refresh_leaving();
  bool out_of_touch(bool touch);
  void linger();
  bool only_we_know(const view& former) const;
  void hand_on(bool all);
  void hand_on_if_due();
  void keep_former(const view& v);
  void remember_former(const view& v);
  void go(bool clean, bool erase);

  void send_to(const peer_id& to, message m) {
    out_->push_back(send{{to}, std::move(m)});
  }
  void say(std::string text) { out_->push_back(log{std::move(text)}); }

  config config_;
  random random_;
  cluster::phase phase_ = phase::created;
  view view_;
  bool seated_ = false;
  std::vector<view> former_;
  nanoseconds hand_on_at_ = time_max; ///< what of it the others may not know
  agreement agreement_;
  detector detector_;
  wishes wishes_;
  std::map<peer_id, link> links_;
  std::map<std::string, dial> dials_;
  std::map<std::string, seed> seeds_;      ///< that were tried in company
  std::map<std::string, peer_id> reached_; ///< who answered there
  /// Whose word is that we were revoked: not dialled again before a new view.
  std::set<std::string> barred_;
  std::string accuser_; ///< one of them; empty: nobody, or we were admitted
  nanoseconds shut_out_at_ = time_max; ///< when its word counts
  std::map<peer_id, stall> stalls_;    ///< of those that the view counts
  bool jobs_wait_ = false; ///< for members; known while somebody is out so

  key_record keys_;
  std::optional<offering> offer_;
  nanoseconds ask_key_at_ = 0; ///< when to ask for the view's key; 0: no need
  std::map<key_digest, std::uint64_t> revocations_; ///< own wishes: their tags

  bool leaving_ = false;     ///< leave was asked for
  bool leaving_now_ = false; ///< leave_now was
  bool handed_on_ = false;   ///< what the others need not ask us for then
  bool lingering_ = false;   ///< out of the view; tells the others
  bool warned_apart_ = false;
  bool warned_far_ = false;
  std::string refusal_; ///< the last that was reported
  nanoseconds leave_until_ = 0;
  nanoseconds join_not_before_ = 0;
  nanoseconds started_at_ = 0;
  nanoseconds doubted_until_ = 0;
  nanoseconds in_touch_at_ = 0; ///< while leaving: when others were there
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
