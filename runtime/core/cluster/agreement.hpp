// runtime/core/cluster/agreement.hpp -- decides which view succeeds one view.
//
// Single-decree consensus among the voters of a base view; one instance per
// base. Any voter may start a ballot. A quorum of promises lets it propose a
// value: the value accepted under the highest ballot if there is one, else its
// own. A quorum of accepted messages decides. A voter that has accepted a value
// and hears nothing more starts a ballot itself, so no decision depends on the
// peer that began it.
//
// The lowest ballot of a base, round 0, belongs to one voter, which is drawn
// anew for every view (first_turn). Nothing can have been accepted below it, so
// it needs no promises: its owner decides in one round trip and one write to
// disk instead of two. If the owner is gone, other voters start with round 1 as
// usual.
//
// Invariants
// `promised` never falls; a message with a lower ballot is refused.
// a vote is persisted before the message that reports it is sent.
// a peer never uses one of its ballot numbers twice: it promises, and so
//      persists, the number before it sends it.
// only its owner uses round 0, and only before any other promise.
//
// Source: L. Lamport, Paxos Made Simple, 2001; the quorum is is_quorum().
#pragma once

#include "runtime/core/cluster/events.hpp"
#include "runtime/core/random.hpp"

#include <optional>
#include <vector>

namespace shoal::core::cluster {

struct agreement_config {
  peer_id self{};
  std::uint64_t seed = 0;
  bool stores = true; ///< false: nothing is persisted (an embedded peer)
  /// The least time for half a ballot (one request and its answers) before
  /// another ballot is started. On a network with latencies of microseconds the
  /// time goes into two disk writes and a loaded scheduler. Higher: it takes
  /// longer to replace a proposer that has died.
  nanoseconds ballot_timeout = 300'000'000;
};

/// The greatest timeout of half a ballot. Every expiry doubles the timeout, so
/// 300 ms gets here at the fifth. A disk slower than that is broken.
inline constexpr nanoseconds ballot_timeout_max = 10'000'000'000;
/// The longest pause before a request without an answer is repeated.
inline constexpr nanoseconds resend_max = 1'000'000'000;
/// The least timeout of half a ballot, in measured round trips to most voters
/// (detector::round_trip): one is needed, disks and scheduling take the other.
inline constexpr nanoseconds round_trips_per_half = 2;

/// A sort key for the voters of the view with this number; each view has
/// another order.
std::uint64_t turn_of(epoch number, const peer_id& id);
/// The voter that is first in that order; the zero id if no member votes.
peer_id first_turn(const view& v);

class agreement {
public:
  explicit agreement(agreement_config c);

  /// Starts over for the successor of `base`. `vote` is what was stored, if
  /// it is for this base. @pre `base` outlives its use; self is seated if
  /// `may_vote`
  void follow(const view& base, bool may_vote, const vote_record* vote);

  /// Whether we may start a ballot now: we may vote, no ballot of ours is in
  /// progress, and no other peer's ballot is recent.
  bool may_propose(nanoseconds now) const;

  /// Whether this peer has accepted a value that is perhaps decided, or will
  /// never be decided unless some voter starts another ballot.
  bool unfinished() const { return accepted_ != ballot{}; }

  /// Starts a ballot for `value`. @pre may_propose(now)
  void propose(view value, nanoseconds now, actions& out);

  // Messages for this base and shoal, from a peer of any kind.
  void on(const peer_id& from, const prepare& m, nanoseconds now, actions& out);
  void on(const peer_id& from, const promise& m, nanoseconds now, actions& out);
  void on(const peer_id& from, const accept& m, nanoseconds now, actions& out);
  void
  on(const peer_id& from, const accepted& m, nanoseconds now, actions& out);
  void on(const peer_id& from, const refused& m, nanoseconds now, actions& out);

  /// The measured time for a request to most voters and their answers.
  void expect_round_trip(nanoseconds t) { round_trip_ = t; }
  /// The current timeout of half a ballot. It has expired `expired_` times for
  /// this base, for our ballots or for others that we waited for.
  nanoseconds timeout() const;

  /// Resends requests and gives up a ballot that has timed out.
  void on_tick(nanoseconds now, actions& out);

  /// The decision, once. The caller persists it, sends it to others and calls
  /// follow() with it.
  std::optional<view> take_decided();
  bool has_decided() const { return decided_.has_value(); }

  /// When on_tick() or another propose() has something to do; time_max: never.
  nanoseconds deadline() const;
  /// No ballot of ours may start before this time.
  nanoseconds quiet_until() const { return quiet_until_; }

private:
  enum class stage : std::uint8_t { idle, preparing, accepting };

  const member* voter(const peer_id& id) const;
  bool counts(const peer_id& from, epoch incarnation) const;
  bool proposes(const peer_id& from, const ballot& b) const;
  std::uint64_t highest_round() const;
  bool owns_round_0() const;

  /// Doubling this many times takes any timeout to the greatest.
  static constexpr int expired_max = 6;
  nanoseconds least_timeout() const;
  std::vector<peer_id> others() const;
  void save(actions& out) const;
  void ask(const std::vector<peer_id>& to, actions& out) const;
  void start_accepting(nanoseconds now, actions& out);
  void give_up(nanoseconds now);
  void yield_to_other(nanoseconds now);

  agreement_config config_;
  random random_;
  const view* base_ = nullptr;
  bool may_vote_ = false;
  epoch incarnation_ = 0; ///< of our entry in the base

  peer_id first_{}; ///< the owner of round 0
  ballot promised_;
  ballot accepted_;
  std::optional<view> value_;

  stage stage_ = stage::idle;
  ballot own_;
  view proposal_;
  ballot proposal_from_; ///< highest accepted ballot among the promises
  std::vector<peer_id> answered_;
  nanoseconds asked_at_ = 0;
  nanoseconds give_up_at_ = 0;
  nanoseconds resend_at_ = 0;
  nanoseconds quiet_until_ = 0;
  std::uint64_t round_seen_ = 0;
  int failures_ = 0; ///< our ballots that failed in a row; for back-off
  int expired_ = 0;
  bool yielded_ = false; ///< to another ballot that may still be in progress
  nanoseconds round_trip_ = 0;
  std::optional<view> decided_;
};

} // namespace shoal::core::cluster
