// runtime/core/cluster/agreement.hpp -- decides which view succeeds one view.
//
// Single-decree consensus among the voters of a base view, once per base: any
// voter may start a ballot, a quorum of promises lets it propose (the value
// accepted under the highest ballot if there is one, else its own), a quorum
// of accepted decides. Whoever accepted a value and hears nothing more starts
// a ballot itself, so that no decision depends on the peer that began it.
//
// The lowest ballot of a base, round 0, belongs to one voter, drawn anew from
// every view (first_turn). Nothing can have been accepted below it, so it
// needs no promises: its owner decides in one round trip and one write to disk
// instead of two. If the owner is gone, others start with round 1 as usual.
//
// Invariants
// `promised` never falls; nothing below it is answered with yes.
// a vote is persisted before the message that tells it.
// an own ballot number is never used twice: it is promised, so persisted,
//      before it is sent.
// round 0 is used by its owner alone, and only before any other promise.
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
  /// A ballot's half, a question and its answers, may take so long at least
  /// before another ballot is started: on a network of microseconds what takes
  /// time is two disks and a loaded scheduler. Higher: a proposer that dies is
  /// overtaken later.
  nanoseconds ballot_timeout = 300'000'000;
};

/// And after at most so long, however often it was too short: doubled each
/// time, 300 ms gets there at the fifth. Slower disks than that are broken.
inline constexpr nanoseconds ballot_timeout_max = 10'000'000'000;
/// A question without an answer is repeated at least so often.
inline constexpr nanoseconds resend_max = 1'000'000'000;
/// So many round trips to most voters, as measured (detector::round_trip), are
/// given at least: one is needed, and disks and turns take theirs.
inline constexpr nanoseconds round_trips_per_half = 2;

/// Orders the voters of the view of this number; another order for each view.
std::uint64_t turn_of(epoch number, const peer_id& id);
/// The voter whose turn comes first; nobody's id if none votes.
peer_id first_turn(const view& v);

class agreement {
public:
  explicit agreement(agreement_config c);

  /// Starts over for the successor of `base`. `vote` is what was stored, if
  /// it is for this base. @pre `base` outlives its use; self is seated if
  /// `may_vote`
  void follow(const view& base, bool may_vote, const vote_record* vote);

  /// Whether a ballot of our own may start now: it is our right, none is in
  /// progress, and nobody else's is recent.
  bool may_propose(nanoseconds now) const;

  /// Whether a value was accepted that might be decided, or never be unless
  /// somebody starts another ballot.
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

  /// What a question and its answers from most voters take.
  void expect_round_trip(nanoseconds t) { round_trip_ = t; }
  /// How long half a ballot is given now: it has been too short `expired_`
  /// times for this base, for ours or for another that we waited for.
  nanoseconds timeout() const;

  /// Resends, gives up on a ballot that takes too long.
  void on_tick(nanoseconds now, actions& out);

  /// The decision, once. The caller persists it, tells it and follow()s it.
  std::optional<view> take_decided();
  bool has_decided() const { return decided_.has_value(); }

  /// When on_tick or another propose() is worth while; never: time_max.
  nanoseconds deadline() const;
  /// Until when no ballot of ours may start.
  nanoseconds quiet_until() const { return quiet_until_; }

private:
  enum class stage : std::uint8_t { idle, preparing, accepting };

  const member* voter(const peer_id& id) const;
  bool counts(const peer_id& from, epoch incarnation) const;
  bool proposes(const peer_id& from, const ballot& b) const;
  std::uint64_t highest_round() const;
  bool owns_round_0() const;

  /// Enough to double any timeout to the greatest.
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
  int failures_ = 0; ///< ballots of ours in a row, for the back-off
  int expired_ = 0;
  bool yielded_ = false; ///< to a ballot that may still be under way
  nanoseconds round_trip_ = 0;
  std::optional<view> decided_;
};

} // namespace shoal::core::cluster
