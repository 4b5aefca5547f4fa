// runtime/core/cluster/messages.hpp -- messages between cluster cores.
//
// Plain data; runtime/wire turns it into Protobuf and checks it. A message does
// not contain the sender's peer id: the transport has proved it. Messages may
// be lost, repeated and reordered; a peer that needs an answer asks again.
//
// `base` is the number of the view that is to be succeeded: the voters of that
// view decide which view comes next. The next number is greater, mostly by one.
#pragma once

#include "runtime/core/cluster/local/hello.hpp"
#include "runtime/core/view.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace shoal::core::cluster {

/// Orders the proposals for one successor. {0, 0} is below every valid ballot.
struct ballot {
  std::uint64_t round = 0;
  peer_id proposer{};
  friend auto operator<=>(const ballot&, const ballot&) = default;
};
void fields(auto& v, of<ballot> auto& x) {
  v("round", x.round, at_most(epoch_max));
  v("proposer", x.proposer);
}

/// Asks to be admitted to `shoal`; the answer is decided{a view with it}.
struct join_request {
  shoal_id shoal{};
  member draft;        ///< id.incarnation is 0
  bool seated = false; ///< has the votes of its entry in the current view
  epoch floor = 0;     ///< the highest epoch it has seen, in any shoal
};
void fields(auto& v, of<join_request> auto& x) {
  v("shoal", x.shoal);
  v("draft", x.draft);
  v("seated", x.seated);
  v("floor", x.floor, at_most(epoch_max));
}

/// Why a join_request is not granted.
struct join_answer {
  shoal_id shoal{};                   ///< the shoal that was asked for
  std::optional<shoal_id> into;       ///< it has dissolved into this one
  std::vector<std::string> addresses; ///< where to find that shoal
  std::string reason;                 ///< shown to users
  bool later = false;                 ///< it will be granted after a pause: ask
                                      ///< again
};
void fields(auto& v, of<join_answer> auto& x) {
  v("shoal", x.shoal);
  v("into", x.into);
  v("addresses", x.addresses,
    list_of(limits::addresses_max, text_of(limits::address_bytes_max)));
  v("reason", x.reason, cleaned_text_of(limits::text_bytes_max));
  v("later", x.later);
}

struct heartbeat {
  shoal_id shoal{};
  epoch number = 0;
  std::uint64_t sequence = 0;
};
void fields(auto& v, of<heartbeat> auto& x) {
  v("shoal", x.shoal);
  v("number", x.number, at_most(epoch_max));
  v("sequence", x.sequence);
}

struct heartbeat_ack {
  shoal_id shoal{}; ///< of the answering peer
  epoch number = 0;
  std::uint64_t sequence = 0;
};
void fields(auto& v, of<heartbeat_ack> auto& x) {
  v("shoal", x.shoal);
  v("number", x.number, at_most(epoch_max));
  v("sequence", x.sequence);
}

struct prepare {
  shoal_id shoal{};
  epoch base = 0;
  cluster::ballot ballot;
};
void fields(auto& v, of<prepare> auto& x) {
  v("shoal", x.shoal);
  v("base", x.base, at_most(epoch_max));
  v("ballot", x.ballot);
}

struct promise {
  shoal_id shoal{};
  epoch base = 0;
  cluster::ballot ballot;
  epoch incarnation = 0;     ///< of the voter, as the voter knows it
  cluster::ballot accepted;  ///< {0, 0}: none
  std::optional<view> value; ///< the accepted value
};
void fields(auto& v, of<promise> auto& x) {
  v("shoal", x.shoal);
  v("base", x.base, at_most(epoch_max));
  v("ballot", x.ballot);
  v("incarnation", x.incarnation, at_most(epoch_max));
  v("accepted", x.accepted);
  v("value", x.value);
}

struct accept {
  shoal_id shoal{};
  epoch base = 0;
  cluster::ballot ballot;
  view value;
};
void fields(auto& v, of<accept> auto& x) {
  v("shoal", x.shoal);
  v("base", x.base, at_most(epoch_max));
  v("ballot", x.ballot);
  v("value", x.value);
}

struct accepted {
  shoal_id shoal{};
  epoch base = 0;
  cluster::ballot ballot;
  epoch incarnation = 0;
};
void fields(auto& v, of<accepted> auto& x) {
  v("shoal", x.shoal);
  v("base", x.base, at_most(epoch_max));
  v("ballot", x.ballot);
  v("incarnation", x.incarnation, at_most(epoch_max));
}

/// The answer to a prepare or accept with too low a ballot: `promised` is
/// higher.
struct refused {
  shoal_id shoal{};
  epoch base = 0;
  cluster::ballot ballot; ///< of the refused message
  cluster::ballot promised;
};
void fields(auto& v, of<refused> auto& x) {
  v("shoal", x.shoal);
  v("base", x.base, at_most(epoch_max));
  v("ballot", x.ballot);
  v("promised", x.promised);
}

/// A view that a quorum has accepted; sent by a member of that view or of ours.
struct decided {
  view value;
};
void fields(auto& v, of<decided> auto& x) {
  v("value", x.value);
}

/// Asks for the newest decided view, if it is newer than `number`.
struct view_request {
  shoal_id shoal{};
  epoch number = 0;
};
void fields(auto& v, of<view_request> auto& x) {
  v("shoal", x.shoal);
  v("number", x.number, at_most(epoch_max));
}

enum class change_kind : std::uint8_t {
  submit_job = 1, ///< `job`; if the job is listed: `job`'s end, if that end
                  ///< counts more
  end_job = 2,    ///< `id`, `state`, `done_step`, `cause`; `since`: 0: the
                  ///< whole job; else its `island`, void if that has another
                  ///< place
  leave = 3,      ///< `subject` becomes leaving
  remove = 4,     ///< `subject` is removed
  update = 5,   ///< `subject` takes `device`, `addresses`, `networks`, `voter`
  cut = 6,      ///< `subject` and `other` cannot reach each other
  mend = 7,     ///< they can reach each other again
  seat = 8,     ///< `subject` has been heard in the shoal: joining ends
  revoke = 9,   ///< `subject` is banned for good; `key` replaces `old_key`
  invite = 10,  ///< `invite` may be used
  redeem = 11,  ///< `invite` is used by `subject`
  retry = 12,   ///< `island` of job `id` starts over in its place of `since`
  expel = 13,   ///< removes `subject`, if the view still is number `since`
  arrived = 14, ///< all state that moves in `island` of job `id` since `since`
                ///< has arrived
  remove_job = 15, ///< removes the job `id`, which has ended, from the list
  drain_job = 16,  ///< the job `id` stops after its step
  version = 17, ///< the job `id` serves `version`, and beside it only that of
                ///< step `keeps`; void without that one. With the newest one as
                ///< both: only that
  scale_job = 18, ///< the served model of job `id` is to have `islands`
                  ///< pipelines; void if their number has changed since `since`
};

/// One wished change to the view.
struct change {
  change_kind kind = change_kind::submit_job;
  job_entry job;
  job_id id = 0;
  job_state state = job_state::done;
  std::uint64_t done_step = 0;
  member_id subject;
  device_profile device;
  std::vector<std::string> addresses;
  std::vector<network_profile> networks;
  member_id other;   ///< of a cut
  bool voter = true; ///< false only while another member votes
  key_digest key{};
  key_digest old_key{}; ///< if the view names another key, the change is void
  invitation invite;
  epoch since = 0;
  bool afresh = false; ///< of an expulsion: earlier ones are long ago
  std::string cause{};
  std::uint32_t island = 0;
  model_version version;
  std::uint64_t keeps = 0;
  std::uint32_t islands = 0;
  friend bool operator==(const change&, const change&) = default;
};
void fields(auto& v, of<change> auto& x) {
  v("kind", x.kind, up_to(change_kind::scale_job));
  v("job", x.job);
  v("id", x.id);
  v("state", x.state, up_to(job_state::failed));
  v("done_step", x.done_step, at_most(epoch_max));
  v("subject", x.subject);
  v("device", x.device);
  v("addresses", x.addresses,
    list_of(limits::addresses_max, text_of(limits::address_bytes_max)));
  v("networks", x.networks, list_of(networks_max));
  v("other", x.other);
  v("voter", x.voter);
  v("key", x.key, or_absent());
  v("old_key", x.old_key, or_absent());
  v("invite", x.invite, or_absent());
  v("since", x.since, at_most(epoch_max));
  v("afresh", x.afresh);
  v("cause", x.cause, text_of(limits::job_cause_bytes_max));
  v("island", x.island, at_most(limits::islands_max - 1));
  v("version", x.version, or_absent());
  v("keeps", x.keeps, at_most(epoch_max));
  v("islands", x.islands, at_most(limits::islands_max));
}

/// Wishes of a member without a vote, sent to one with a vote.
struct change_request {
  shoal_id shoal{};
  change what;
};
void fields(auto& v, of<change_request> auto& x) {
  v("shoal", x.shoal);
  v("what", x.what);
}

/// A watcher's opinion of a member. Members are named by their index in the
/// view that the message is about. The note with the highest stamp of a watcher
/// counts.
struct alert_note {
  std::uint32_t watcher = 0;
  std::uint32_t subject = 0;
  std::uint32_t stamp = 0;
  bool suspected = false; ///< false: takes a suspicion back
  friend bool operator==(const alert_note&, const alert_note&) = default;
};
void fields(auto& v, of<alert_note> auto& x) {
  v("watcher", x.watcher, at_most(members_max - 1));
  v("subject", x.subject, at_most(members_max - 1));
  v("stamp", x.stamp);
  v("suspected", x.suspected);
}

/// News about view `number`; large shoals pass it on between neighbours.
struct gossip {
  shoal_id shoal{};
  epoch number = 0;
  std::vector<alert_note> alerts;
};
void fields(auto& v, of<gossip> auto& x) {
  v("shoal", x.shoal);
  v("number", x.number, at_most(epoch_max));
  v("alerts", x.alerts, list_of(notes_max));
}

/// Another cluster key, in use or about to be. Sent to members only.
struct key_offer {
  shoal_id shoal{};
  cluster_key key{};
};
void fields(auto& v, of<key_offer> auto& x) {
  v("shoal", x.shoal);
  v("key", x.key);
}

/// The sender has stored the offered key.
struct key_held {
  shoal_id shoal{};
  key_digest key{};
};
void fields(auto& v, of<key_held> auto& x) {
  v("shoal", x.shoal);
  v("key", x.key);
}

/// The view names a key that the sender does not have.
struct key_request {
  shoal_id shoal{};
  key_digest key{};
};
void fields(auto& v, of<key_request> auto& x) {
  v("shoal", x.shoal);
  v("key", x.key);
}

using message =
  std::variant<hello, join_request, join_answer, heartbeat, heartbeat_ack,
               gossip, prepare, promise, accept, accepted, refused, decided,
               view_request, change_request, key_offer, key_held, key_request>;
/// Names of the kinds, in their order; the same as in cluster.proto.
inline constexpr std::array<const char*, std::variant_size_v<message>>
  message_names = {"hello",        "join_request",   "join_answer",
                   "heartbeat",    "heartbeat_ack",  "gossip",
                   "prepare",      "promise",        "accept",
                   "accepted",     "refused",        "decided",
                   "view_request", "change_request", "key_offer",
                   "key_held",     "key_request"};

} // namespace shoal::core::cluster
