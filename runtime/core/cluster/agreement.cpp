// runtime/core/cluster/agreement.cpp -- proposer and acceptor of one decision.
#include "runtime/core/cluster/agreement.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/cluster/credible.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shoal::core::cluster {

std::uint64_t turn_of(epoch number, const peer_id& id) {
  std::uint64_t key = 0; // ids are hashes: any of their bytes will do
  std::memcpy(&key, id.data(), sizeof key);
  return random(key ^ (number * 0x9e3779b97f4a7c15u)).next();
}

peer_id first_turn(const view& v) {
  peer_id first{};
  std::uint64_t best = ~std::uint64_t{0};
  for (const member& m : v.members)
    if (std::uint64_t turn = turn_of(v.number, m.id.peer);
        votes(m) && turn <= best) {
      best = turn;
      first = m.id.peer;
    }
  return first;
}

agreement::agreement(agreement_config c) : config_(c), random_(c.seed) {
}

void agreement::follow(const view& base, bool may_vote,
                       const vote_record* vote) {
  base_ = &base;
  first_ = first_turn(base);
  const member* self = find_member(base, config_.self);
  may_vote_ = may_vote && self != nullptr && votes(*self);
  incarnation_ = self != nullptr ? self->id.incarnation : 0;
  promised_ = accepted_ = {};
  value_.reset();
  if (vote != nullptr && vote->shoal == base.shoal
      && vote->base == base.number) {
    promised_ = vote->promised;
    accepted_ = vote->accepted;
    value_ = vote->value;
  }
  stage_ = stage::idle;
  answered_.clear();
  quiet_until_ = 0;
  round_seen_ = promised_.round;
  failures_ = expired_ = 0;
  yielded_ = false;
  decided_.reset();
}

nanoseconds agreement::least_timeout() const {
  return std::max(config_.ballot_timeout, round_trips_per_half * round_trip_);
}

nanoseconds agreement::timeout() const {
  const nanoseconds least = least_timeout();
  return std::max(least, std::min(ballot_timeout_max, least << expired_));
}

const member* agreement::voter(const peer_id& id) const {
  const member* m = find_member(*base_, id);
  return m != nullptr && votes(*m) ? m : nullptr;
}

bool agreement::counts(const peer_id& from, epoch incarnation) const {
  const member* m = voter(from);
  return m != nullptr && m->id.incarnation == incarnation
         && std::ranges::find(answered_, from) == answered_.end();
}

std::vector<peer_id> agreement::others() const {
  std::vector<peer_id> out;
  for (const member& m : base_->members)
    if (votes(m) && m.id.peer != config_.self
        && std::ranges::find(answered_, m.id.peer) == answered_.end())
      out.push_back(m.id.peer);
  return out;
}

void agreement::save(actions& out) const {
  if (config_.stores)
    out.push_back(persist{
      vote_record{base_->shoal, base_->number, promised_, accepted_, value_}});
}

bool agreement::may_propose(nanoseconds now) const {
  return may_vote_ && stage_ == stage::idle && !decided_ && now >= quiet_until_
         && highest_round() < epoch_max;
}

void agreement::propose(view value, nanoseconds now, actions& out) {
  SHOAL_ASSERT(may_propose(now));
  if (std::exchange(yielded_, false))
    expired_ = std::min(expired_ + 1, expired_max); // it was too short
  if (is_quorum(*base_, {config_.self})) {
    // Every quorum contains this peer, so only its own acceptance can bind it,
    // and the persisted view is vote and decision in one.
    decided_ = value_ ? *value_ : std::move(value);
    return;
  }
  if (owns_round_0()) {
    promised_ = own_ = {0, config_.self};
    proposal_ = std::move(value);
    start_accepting(now, out);
    return;
  }
  own_ = {highest_round() + 1, config_.self};
  round_seen_ = own_.round;
  promised_ = own_;
  save(out);
  proposal_ = value_ ? *value_ : std::move(value);
  proposal_from_ = accepted_;
  stage_ = stage::preparing;
  answered_ = {};
  asked_at_ = now;
  give_up_at_ = now + timeout();
  resend_at_ = now + config_.ballot_timeout / 3;
  std::vector<peer_id> to = others();
  answered_.push_back(config_.self);
  ask(to, out);
}

void agreement::ask(const std::vector<peer_id>& to, actions& out) const {
  if (stage_ == stage::preparing)
    out.push_back(send{to, prepare{base_->shoal, base_->number, own_}});
  else
    out.push_back(
      send{to, accept{base_->shoal, base_->number, own_, proposal_}});
}

/// Whether `from` may propose with this ballot: it is a voter, the ballot names
/// it, and an honest peer can reach the round; only one peer may use round 0.
bool agreement::proposes(const peer_id& from, const ballot& b) const {
  return b.proposer == from && b.round <= believed_max(highest_round())
         && voter(from) != nullptr && (b.round > 0 || from == first_);
}

/// The highest round that we know of: our next ballot goes above it.
std::uint64_t agreement::highest_round() const {
  return std::max(round_seen_, promised_.round);
}

bool agreement::owns_round_0() const {
  return config_.stores && first_ == config_.self && promised_ == ballot{}
         && round_seen_ == 0;
}

void agreement::on(const peer_id& from, const prepare& m, nanoseconds now,
                   actions& out) {
  if (!proposes(from, m.ballot))
    return;
  round_seen_ = std::max(round_seen_, m.ballot.round);
  if (!may_vote_ || decided_)
    return;
  if (m.ballot < promised_) {
    out.push_back(send{{from}, refused{m.shoal, m.base, m.ballot, promised_}});
    return;
  }
  if (m.ballot != promised_) {
    promised_ = m.ballot;
    save(out);
    yield_to_other(now);
  }
  out.push_back(
    send{{from},
         promise{m.shoal, m.base, m.ballot, incarnation_, accepted_, value_}});
}

void agreement::on(const peer_id& from, const promise& m, nanoseconds now,
                   actions& out) {
  if (stage_ != stage::preparing || m.ballot != own_
      || !counts(from, m.incarnation))
    return;
  // It had accepted that value before it promised ours, and that value
  // must be able to follow the base.
  if (m.accepted > own_ || (m.value && !can_follow(*base_, *m.value)))
    return;
  if (m.value && m.accepted > proposal_from_) {
    proposal_ = *m.value;
    proposal_from_ = m.accepted;
  }
  answered_.push_back(from);
  if (is_quorum(*base_, answered_))
    start_accepting(now, out);
}

void agreement::start_accepting(nanoseconds now, actions& out) {
  SHOAL_ASSERT(promised_ == own_);
  stage_ = stage::accepting;
  accepted_ = own_;
  value_ = proposal_;
  save(out);
  answered_ = {};
  asked_at_ = now;
  give_up_at_ = now + timeout();
  resend_at_ = now + config_.ballot_timeout / 3;
  std::vector<peer_id> to = others();
  answered_.push_back(config_.self);
  ask(to, out);
}

void agreement::on(const peer_id& from, const accept& m, nanoseconds now,
                   actions& out) {
  if (!proposes(from, m.ballot) || !can_follow(*base_, m.value))
    return;
  round_seen_ = std::max(round_seen_, m.ballot.round);
  if (!may_vote_ || decided_)
    return;
  if (m.ballot < promised_) {
    out.push_back(send{{from}, refused{m.shoal, m.base, m.ballot, promised_}});
    return;
  }
  if (m.ballot != accepted_) {
    promised_ = accepted_ = m.ballot;
    value_ = m.value;
    save(out);
    yield_to_other(now);
  }
  out.push_back(
    send{{from}, accepted{m.shoal, m.base, m.ballot, incarnation_}});
}

void agreement::on(const peer_id& from, const accepted& m, nanoseconds,
                   actions&) {
  if (stage_ != stage::accepting || m.ballot != own_
      || !counts(from, m.incarnation))
    return;
  answered_.push_back(from);
  if (is_quorum(*base_, answered_)) {
    decided_ = proposal_;
    stage_ = stage::idle;
  }
}

void agreement::on(const peer_id& from, const refused& m, nanoseconds now,
                   actions&) {
  if (voter(from) == nullptr
      || m.promised.round > believed_max(highest_round()))
    return;
  round_seen_ = std::max(round_seen_, m.promised.round);
  if (stage_ != stage::idle && m.ballot == own_)
    give_up(now);
}

void agreement::on_tick(nanoseconds now, actions& out) {
  if (stage_ == stage::idle)
    return;
  const bool over = now >= give_up_at_;
  if (over)
    expired_ = std::min(expired_ + 1, expired_max);
  if (over && stage_ == stage::preparing)
    return give_up(now); // by now our wishes may have changed
  if (over || now >= resend_at_) {
    ask(others(), out);
    // At growing intervals: an answer may wait for a disk.
    resend_at_ =
      now + std::clamp(now - asked_at_, config_.ballot_timeout / 3, resend_max);
  }
  // Proposed values stay proposed: a voter that has promised a higher ballot
  // refuses ours, and for all others a new ballot would only cost another write
  // to disk.
  if (over)
    give_up_at_ = now + timeout();
}

/// Ends our ballot and waits a random time that grows with every failure, so
/// that one of several colliding proposers gets through.
void agreement::give_up(nanoseconds now) {
  stage_ = stage::idle;
  failures_ = std::min(failures_ + 1, 6);
  std::uint64_t unit = std::uint64_t(least_timeout() / 8);
  quiet_until_ =
    now + nanoseconds(unit / 4) + nanoseconds(random_.below(unit * failures_));
}

/// Another ballot is above ours: gives it time to finish.
void agreement::yield_to_other(nanoseconds now) {
  stage_ = stage::idle;
  yielded_ = true;
  const nanoseconds t = timeout();
  quiet_until_ = std::max(
    quiet_until_, now + t + nanoseconds(random_.below(std::uint64_t(t / 2))));
}

std::optional<view> agreement::take_decided() {
  std::optional<view> out = std::move(decided_);
  decided_.reset();
  return out;
}

nanoseconds agreement::deadline() const {
  if (!may_vote_)
    return time_max;
  if (stage_ != stage::idle)
    return std::min(give_up_at_, resend_at_);
  return unfinished() ? quiet_until_ : time_max;
}

} // namespace shoal::core::cluster
