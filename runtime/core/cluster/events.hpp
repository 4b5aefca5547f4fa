// runtime/core/cluster/events.hpp -- what goes into and comes out of the core.
//
// The shell feeds events to membership::step() and carries out the actions in
// their order. There is one hard rule: a persist must be stored, where it
// outlives the process, before the shell carries out any later action (of this
// step or a later one) that could reveal it. outbox.hpp knows which actions do.
#pragma once

#include "runtime/core/cluster/local/key_ring.hpp"
#include "runtime/core/cluster/messages.hpp"

namespace shoal::core::cluster {

/// Records: what a peer must not forget. A new record replaces the last one of
/// its kind.

/// The newest decided view.
struct view_record {
  view current;
  /// This peer has taken its seat in `current`'s shoal and has lost no vote
  /// since: it may vote for its entry, even if the incarnation differs.
  bool seated = false;
  std::vector<view> former; ///< last views of shoals that dissolved while we
                            ///< knew them, or that removed us
  /// If `current` dissolves its shoal: the jobs on its list until then, and
  /// those that it had taken off. The peer brings both to the next shoal.
  std::vector<job_entry> given_up{};
  std::vector<job_id> given_up_removed{};
  friend bool operator==(const view_record&, const view_record&) = default;
};
void fields(auto& v, of<view_record> auto& x) {
  v("current", x.current);
  v("seated", x.seated);
  v("former", x.former, list_of(former_max));
  v("given_up", x.given_up, list_of(jobs_max));
  v("given_up_removed", x.given_up_removed, list_of(jobs_removed_max));
}

/// The vote for the successor of view `base`. It counts only beside a
/// view_record of that shoal and number.
struct vote_record {
  shoal_id shoal{};
  epoch base = 0;
  ballot promised;
  ballot accepted;
  std::optional<view> value; ///< the accepted value
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
/// Names of the kinds, in their order; the same as in cluster.proto.
inline constexpr std::array<const char*, std::variant_size_v<record>>
  record_names = {"view", "vote", "keys"};

/// All records of a peer; if both are empty, it has no history.
struct history {
  std::optional<view_record> view;
  std::optional<vote_record> vote;
  std::optional<key_record> keys;
};

// Events ---------------------------------------------------------------------

/// The first event; comes once.
struct start {
  history stored;
};

/// The transport has an authenticated connection. If the peer's process has
/// restarted, peer_down of its former process comes first.
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
/// The peer at that address says that this peer was revoked. Its proof uses a
/// key that may have been replaced, so the answering peer may itself be the
/// revoked one. Comes before the connect_failed of that attempt.
struct turned_away {
  std::string address;
};
/// A peer that we dialled knows another process with this peer's identity.
/// Comes before the connect_failed of that attempt.
struct doubted {};
struct received {
  peer_id from{};
  message what;
};

/// Time has passed; see need_tick_at. Additional ticks do no harm.
struct tick {};

/// Discovery has found a peer at this address, perhaps not for the first time.
struct discovered {
  std::string address;
  bool listed = false; ///< named in a list: perhaps no peer is there now
};

/// The connected peer `peer` answers at an address that we dialled.
struct reached {
  std::string address;
  peer_id peer{};
};

struct submit_job {
  job_entry job;
};
/// Nobody waits for a job that this peer was to submit: it is proposed no more. A
/// view that others agree on by then may still list it.
struct withdraw_job {
  job_id job = 0;
};
/// A user's wish applies to the whole job, wherever it runs. The end of one
/// island is void once it has another place, where it may run from an earlier
/// step. A job is done when all its islands are, and has failed when one has.
struct set_job_state {
  job_id id = 0;
  job_state state = job_state::done;
  std::uint64_t done_step = 0;
  epoch since = 0;     ///< of the island's place; 0: the whole job
  std::string cause{}; ///< of a failure, in words
  std::uint32_t island = 0;
};
/// A user asks to remove an ended job from the list. The answer is rejected{}
/// if there is no such job, or if it has not ended.
struct remove_job {
  job_id id = 0;
};
/// A user asks a job to stop after the step under way, with a checkpoint: a mark
/// in the view tells all peers, so that it outlives the peer that was asked.
struct drain_job {
  job_id id = 0;
};
/// The served job can take this version, and needs of the others only that of
/// step `keeps`; with the newest one as both, it needs no other one.
struct serve_version {
  job_id id = 0;
  model_version version;
  std::uint64_t keeps = 0;
};
/// A served model is to have this number of pipelines. `since`: the epoch of the
/// job's `scaled` mark, 0 if it has none; void once the mark is another one.
struct scale_job {
  job_id id = 0;
  std::uint32_t islands = 1;
  epoch since = 0;
};
/// All state that moves in an island's place of `since` has arrived.
struct job_arrived {
  island_id id;
  epoch since = 0;
};

/// An island makes no progress in its place of `since`: the next view gives the
/// same place another number, so that all participants begin anew.
struct retry_job {
  island_id id;
  epoch since = 0;
};
/// The work of a member hangs, as found in view `number`; void in any other
/// view.
struct expel_member {
  peer_id peer{};
  epoch number = 0;
};

/// Gives this peer no more work. The answer is a view in which it is leaving,
/// or left{} if no shoal or no quorum is in reach. A shoal of one has no one to
/// tell: leave_now follows when its work has ended.
struct leave {};

/// Leaves now: other peers hold its state. The answer is left{}.
struct leave_now {};

/// What this peer can do now; a later view will contain it.
struct update_profile {
  device_profile device;
  std::vector<std::string> addresses; ///< empty: as they were
  std::vector<network_profile> networks;
};

/// Where this peer can be reached now; a later view will contain it. @pre not
/// empty
struct update_addresses {
  std::vector<std::string> addresses;
};

/// The operator gives up the old quorum: this peer alone founds a new shoal,
/// which keeps the jobs.
struct recover_force {};

/// Removes a peer for good and replaces the cluster key. The answer is a view
/// that names the peer as revoked, or rejected{} with this tag.
struct revoke_peer {
  peer_id peer{};
  cluster_key key{}; ///< the new one, random
  std::uint64_t tag = 0;
};

/// add_invite makes a token valid; redeem uses it. The token belongs to the
/// first peer that a view names with it. A token that no view knows gets no
/// answer.
struct add_invite {
  invitation invite;
};
struct redeem_invite {
  cluster_key token{};
  peer_id peer{};
};
/// As withdraw_job.
struct withdraw_invite {
  cluster_key token{};
};

using event =
  std::variant<start, peer_up, peer_down, connect_failed, turned_away, doubted,
               received, tick, discovered, reached, submit_job, set_job_state,
               remove_job, drain_job, job_arrived, retry_job, expel_member,
               leave, leave_now, update_profile, update_addresses,
               recover_force, revoke_peer, add_invite, redeem_invite,
               serve_version, scale_job, withdraw_job, withdraw_invite>;

// Actions --------------------------------------------------------------------

/// Sent to connected peers only; peers without a connection are skipped.
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

/// Closes every connection to an expelled peer, so that whatever waits for that
/// peer ends. Data already sent may still leave. The peer connects again when
/// it can, and then learns that it is out.
struct disconnect {
  peer_id peer{};
};

/// A view was decided. During a peer's life the numbers only grow, whichever
/// shoal it is in. Jobs in the view are safe.
struct new_view {
  view current;
  bool member = false; ///< this process is in it; otherwise it asks to be
                       ///< admitted
};
/// Whether this peer's actors may see the view: not while it names an earlier
/// process of this peer, since this process must not act in that one's name.
/// The jobs' protocol has one seal for each member, not two from two processes.
[[nodiscard]] inline bool is_ours(const new_view& v, const peer_id& self) {
  return v.member || find_member(v.current, self) == nullptr;
}

/// Repeated every waiting_period while the view's quorum is not in contact.
struct waiting_for {
  epoch number = 0;
  std::vector<member> missing;
};

/// The answer to leave: the process may end.
struct left {
  bool clean = false; ///< the other peers know; the history is erased, or is
                      ///< needed only to tell late members that their shoal has
                      ///< dissolved
};

/// No peer admits this one, and the peer at `address` says that it was revoked:
/// the process cannot do anything useful any more.
struct shut_out {
  std::string address;
};

/// The shoal ended by agreement; its members join another. Follows new_view.
struct dissolved {
  shoal_id into{};
};

struct rejected {
  std::string reason;
  job_id job = 0; ///< the job concerned, if there is one
};

/// The cluster keys have changed: the transport uses these.
struct use_keys {
  key_record keys;
};

/// Requests a tick at this time or soon after; replaces earlier requests.
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
