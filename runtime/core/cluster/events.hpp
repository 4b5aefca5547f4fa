// runtime/core/cluster/events.hpp -- what goes into and comes out of the core.
//
// The shell feeds events to membership::step() and carries out the actions in
// their order. The one hard rule: a persist is stored, where it outlives the
// process, before any later action is carried out that could tell of it, of
// this or a later step. outbox.hpp knows which those are.
#pragma once

#include "runtime/core/cluster/local/key_ring.hpp"
#include "runtime/core/cluster/messages.hpp"

namespace shoal::core::cluster {

/// Records: what a peer must not forget. Each kind replaces the one of its
/// kind before.

/// The newest decided view.
struct view_record {
  view current;
  /// This peer has taken its seat in `current`'s shoal and has lost no vote
  /// since: it may vote for its entry, whatever its incarnation.
  bool seated = false;
  std::vector<view> former; ///< last views of shoals that dissolved around us,
                            ///< or sent us away
  friend bool operator==(const view_record&, const view_record&) = default;
};
void fields(auto& v, of<view_record> auto& x) {
  v("current", x.current);
  v("seated", x.seated);
  v("former", x.former, list_of(former_max));
}

/// The vote for the successor of view `base`. It counts only beside a
/// view_record of that shoal and number.
struct vote_record {
  shoal_id shoal{};
  epoch base = 0;
  ballot promised;
  ballot accepted;
  std::optional<view> value; ///< that was accepted
  friend bool operator==(const vote_record&, const vote_record&) = default;
};
void fields(auto& v, of<vote_record> auto& x) {
  v("shoal", x.shoal);
  v("base", x.base, at_most(epoch_max));
  v("promised", x.promised);
  v("accepted", x.accepted);
  v("value", x.value);
}

using record = std::variant<view_record, vote_record, key_record>;
/// Of its kinds, in their order: the names in cluster.proto.
inline constexpr std::array<const char*, std::variant_size_v<record>>
  record_names = {"view", "vote", "keys"};

/// All records of a peer; both empty: it has no history.
struct history {
  std::optional<view_record> view;
  std::optional<vote_record> vote;
  std::optional<key_record> keys;
};

// Events ---------------------------------------------------------------------

/// The first event, once.
struct start {
  history stored;
};

/// The transport has an authenticated connection. If a restarted process
/// connects, peer_down of its former self comes first.
struct peer_up {
  peer_id peer{};
  std::uint64_t instance = 0;
};
struct peer_down {
  peer_id peer{};
};
struct connect_failed {
  std::string address;
};
/// Who answers there says that this peer was revoked, by a proof under a key
/// that may have been replaced: it may be the one that was revoked. Comes before
/// the connect_failed of that attempt.
struct turned_away {
  std::string address;
};
/// A peer that was dialled knows another process of this peer's identity.
/// Comes before the connect_failed of that attempt.
struct doubted {};
struct received {
  peer_id from{};
  message what;
};

/// Time has passed; see need_tick_at. Extra ticks do no harm.
struct tick {};

/// Discovery has heard of a peer there, maybe again.
struct discovered {
  std::string address;
  bool listed = false; ///< a list names it: nobody need be there now
};

/// That peer, which is connected, answers at an address that was dialled.
struct reached {
  std::string address;
  peer_id peer{};
};

struct submit_job {
  job_entry job;
};
/// What a user wishes holds of whatever runs; what has become of an assignment
/// is void once the job has another, which may run from an earlier step.
struct set_job_state {
  job_id id = 0;
  job_state state = job_state::done;
  std::uint64_t done_step = 0;
  epoch since = 0;     ///< of the assignment; 0: of any
  std::string cause{}; ///< of a failure, for people
};
/// A user wants a job that has ended listed no more. rejected{} answers if there
/// is none, or if it has not ended.
struct remove_job {
  job_id id = 0;
};
/// All that arrives under the job's assignment `since` is where it should be.
struct job_arrived {
  job_id id = 0;
  epoch since = 0;
};

/// Nothing of the job moves under its assignment of `since`: the next view
/// gives the same another number, so that all begin it anew.
struct retry_job {
  job_id id = 0;
  epoch since = 0;
};
/// A member whose work is hung, as found in view `number`; void in any other.
struct expel_member {
  peer_id peer{};
  epoch number = 0;
};

/// Gives this peer no more work; answered by a view that says `leaving`, or by
/// left{} if no shoal or no quorum is in reach. A shoal of one has nobody to
/// tell: leave_now follows when its work has ended.
struct leave {};

/// Leaves now: its state is with others. Answered by left{}.
struct leave_now {};

/// What this peer can do now; a view will say so.
struct update_profile {
  device_profile device;
  std::vector<std::string> addresses; ///< empty: as they were
  std::vector<network_profile> networks;
};

/// Where this peer can be reached now; a view will say so. @pre not empty
struct update_addresses {
  std::vector<std::string> addresses;
};

/// The operator gives up on the old quorum: a new shoal of this peer alone,
/// which keeps the jobs.
struct recover_force {};

/// Removes a peer for good and replaces the cluster key. A view that names it,
/// or rejected{} with this tag, answers.
struct revoke_peer {
  peer_id peer{};
  cluster_key key{}; ///< the new one, random
  std::uint64_t tag = 0;
};

/// Lets a token be used, and uses one: the first peer that a view names has
/// it. A token that no view knows is not answered.
struct add_invite {
  invitation invite;
};
struct redeem_invite {
  cluster_key token{};
  peer_id peer{};
};

using event =
  std::variant<start, peer_up, peer_down, connect_failed, turned_away, doubted,
               received, tick, discovered, reached, submit_job, set_job_state,
               remove_job, job_arrived, retry_job, expel_member, leave,
               leave_now, update_profile, update_addresses, recover_force,
               revoke_peer, add_invite, redeem_invite>;

// Actions --------------------------------------------------------------------

/// To connected peers only; those whose connection is gone are skipped.
struct send {
  std::vector<peer_id> to;
  message what;
};
struct persist {
  record what;
};

/// Deletes both records, synced: the peer has left for good.
struct erase_history {};

struct connect {
  std::string address;
};

/// Closes every connection with a peer that was expelled, so that whatever
/// waits for it ends; what was sent before may still leave. It connects again
/// when it can, and then learns that it is out.
struct disconnect {
  peer_id peer{};
};

/// A view was decided. Numbers only grow in the life of a peer, whatever
/// shoal it is in. Jobs in it are safe.
struct new_view {
  view current;
  bool member = false; ///< this process is in it; if not, it asks to be
};
/// Whether this peer's actors may see it: not while it names a process of the
/// peer that has ended, in whose name this one must not act. The jobs'
/// protocol has one seal for each member, not two of two lives.
[[nodiscard]] inline bool is_ours(const new_view& v, const peer_id& self) {
  return v.member || find_member(v.current, self) == nullptr;
}

/// Said every waiting_period while the quorum of the view is not in contact.
struct waiting_for {
  epoch number = 0;
  std::vector<member> missing;
};

/// The answer to leave: the process may end.
struct left {
  bool clean = false; ///< the others know; history is erased, or is needless
                      ///< but to tell late members of a shoal that dissolved
};

/// Nobody admits this peer, and `address` says that it was revoked: the process
/// is of no use any more.
struct shut_out {
  std::string address;
};

/// The shoal ended by agreement; its members join another. Follows new_view.
struct dissolved {
  shoal_id into{};
};

struct rejected {
  std::string reason;
  job_id job = 0; ///< if it was about one
};

/// The cluster keys have changed: the transport uses these.
struct use_keys {
  key_record keys;
};

/// Wants a tick at this time or soon after; replaces earlier wishes.
struct need_tick_at {
  nanoseconds when = 0;
};
struct log {
  std::string text;
};

using action = std::variant<send, persist, erase_history, connect, disconnect,
                            new_view, waiting_for, left, shut_out, dissolved,
                            rejected, use_keys, need_tick_at, log>;
using actions = std::vector<action>;

} // namespace shoal::core::cluster
