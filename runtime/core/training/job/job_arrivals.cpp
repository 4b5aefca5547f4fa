// runtime/core/training/job/job_arrivals.cpp -- units that move while steps run: at
// their receivers, at their sources, and the switch to using them.
#include "runtime/core/assert.hpp"
#include "runtime/core/planning/arrivals.hpp"
#include "runtime/core/training/job/job_core.hpp"

#include <algorithm>

namespace shoal::core {

// ---- At the receiver -------------------------------------------------------

/// Units that the seals show to be here go on from there.
void job_core::begin_arrivals() {
  incoming_under_ = duty_.on;
  arrivals_repeated_ = now_;
  for (std::uint32_t u : arriving_units(*duty_.place, config_.self)) {
    incoming& in = incoming_[u];
    in.from = arrival_source(*duty_.place, u);
    in.places = places_of(*duty_.place, u);
  }
  for (const auto& [unit, at] : decision_->in_step) {
    const peer_id& from = arrival_source(*duty_.place, unit);
    const state_version& v = decision_->version;
    if (from == config_.self) {
      outgoing_[{at, unit}].begun = v;
      act(job_action::send_unit{duty_.on.digest, unit, v, at, false});
    }
    if (at != config_.self)
      continue;
    SHOAL_ASSERT(held_.at(unit) == v);
    incoming& in = incoming_.at(unit);
    in.now = incoming::state::following;
    in.begun = v;
    act(job_action::receive_unit{duty_.on.digest, unit, v, from, false});
  }
  go_on_arriving();
}

job_core::arrival_count job_core::arrivals() const noexcept {
  arrival_count out;
  out.all = incoming_.size();
  for (const auto& [unit, in] : incoming_)
    out.here += in.now == incoming::state::following;
  return out;
}

/// Keeps some units on their way; reports when all are in step.
void job_core::go_on_arriving() {
  if (incoming_.empty() || phase_ == phase::halting)
    return;
  const std::uint64_t newest = norms_.empty() ? 0 : norms_.rbegin()->first;
  std::size_t coming = 0;
  std::uint64_t oldest = 0; // step + 1, of the units in state following; 0:
                            // none
  bool in_step = true;
  for (const auto& [unit, in] : incoming_) {
    coming +=
      in.now == incoming::state::asked || in.now == incoming::state::copying;
    if (in.now != incoming::state::following)
      continue;
    const std::uint64_t step = held_.at(unit).step;
    in_step = in_step && !in.behind && step + 1 >= newest; // gradients are on
                                                           // their way
    oldest = oldest == 0 ? step + 1 : std::min(oldest, step + 1);
  }
  in_step = in_step && std::ranges::none_of(incoming_, [](const auto& of) {
              return of.second.now == incoming::state::idle;
            });
  while (coming < arrivals_at_once && ask_for_next())
    ++coming;
  if (oldest == 0)
    oldest = newest + 1; // nothing could be moved
  if (!in_step || coming > 0 || oldest <= complete_said_)
    return;
  complete_said_ = oldest;
  tell(duty_.participants, arrival_complete{duty_.on, oldest - 1});
  if (duty_.participates())
    take(config_.self, arrival_complete{duty_.on, oldest - 1});
}

/// Asks first for units in the fewest places, from the source that sends least;
/// from a paced source one copy at a time. @returns false if there is none to
/// ask for
bool job_core::ask_for_next() {
  std::map<peer_id, std::size_t> sending;
  for (const auto& [unit, in] : incoming_)
    sending[in.from] +=
      in.now == incoming::state::asked || in.now == incoming::state::copying;
  incoming* next = nullptr;
  std::uint32_t which = 0;
  auto rank = [&](const incoming& in) {
    return std::pair(in.places, sending[in.from]);
  };
  for (auto& [unit, in] : incoming_)
    if (in.now == incoming::state::idle
        && (in.places <= config_.copies || sending[in.from] == 0)
        && (!next || rank(in) < rank(*next))) {
      next = &in;
      which = unit;
    }
  if (!next)
    return false;
  next->now = incoming::state::asked;
  ++next->attempt;
  ask_for_arrival(which, 0);
  return true;
}

void job_core::ask_for_arrival(std::uint32_t unit, std::uint64_t after) {
  const incoming& in = incoming_.at(unit);
  act(job_action::send{in.from,
                       arrival_wanted{duty_.on, unit, in.attempt, after}});
}

void job_core::take(const peer_id& from, const arrival_begun& m) {
  const auto at = incoming_.find(m.unit);
  if (!duty_.mine(m.on) || incoming_under_ != duty_.on || at == incoming_.end())
    return;
  incoming& in = at->second;
  if (from != in.from || in.now != incoming::state::asked
      || m.attempt != in.attempt)
    return;
  held_.forget(m.unit);
  in.now = incoming::state::copying;
  in.begun = m.version;
  act(job_action::receive_unit{duty_.on.digest, m.unit, m.version, from, true});
}

void job_core::on(const job_event::arrival_copied& e) {
  const auto at = incoming_.find(e.unit);
  if (at == incoming_.end() || e.digest != incoming_under_.digest)
    return;
  incoming& in = at->second;
  if (in.now != incoming::state::copying || e.step != in.begun.step)
    return;
  held_.set(e.unit, in.begun);
  in.now = incoming::state::following;
  if (in.behind)
    start_over(e.unit);
  else
    catch_up(e.unit);
  go_on_arriving();
}

void job_core::on(const job_event::arrival_reduced& e) {
  const auto at = incoming_.find(e.unit);
  if (at == incoming_.end() || e.digest != incoming_under_.digest)
    return;
  incoming& in = at->second;
  const bool expected =
    (in.now == incoming::state::copying || in.now == incoming::state::following)
    && e.step > in.begun.step;
  if (!expected)
    return;
  in.gradients.insert(e.step);
  catch_up(e.unit);
}

void job_core::catch_up(std::uint32_t unit) {
  incoming& in = incoming_.at(unit);
  if (phase_ == phase::halting || in.now != incoming::state::following
      || in.applying || in.behind)
    return;
  const std::uint64_t step = held_.at(unit).step + 1;
  const auto norm = norms_.find(step);
  if (norm == norms_.end() || !in.gradients.contains(step))
    return;
  in.applying = true;
  act(job_action::apply_arrived{duty_.on.digest, unit, step, norm->second});
}

void job_core::on(const job_event::arrival_applied& e) {
  const auto at = incoming_.find(e.unit);
  if (at == incoming_.end() || e.digest != incoming_under_.digest)
    return;
  incoming& in = at->second;
  SHOAL_ASSERT(in.applying && held_.at(e.unit).step + 1 == e.step); // J-4
  in.applying = false;
  in.gradients.erase(e.step);
  held_.set(e.unit, {e.step, incoming_under_.since});
  if (in.behind)
    start_over(e.unit);
  else
    catch_up(e.unit);
  go_on_arriving();
}

void job_core::start_over(std::uint32_t unit) {
  incoming& in = incoming_.at(unit);
  in.behind = false;
  in.gradients.clear();
  in.now = in.attempt < arrival_tries_max ? incoming::state::idle
                                          : incoming::state::left;
}

/// A step of this assignment has been committed.
void job_core::note_norm(const step_record& r) {
  if (!duty_.place || duty_.place->arriving.empty() || phase_ == phase::halting
      || r.version.made != duty_.on.since || r.replicas == 0)
    return;
  norms_[r.version.step] = applied_norm(r);
  const std::uint64_t newest = norms_.rbegin()->first;
  while (norms_.begin()->first + arrival_backlog_max + 1 < newest)
    norms_.erase(norms_.begin());
  if (incoming_under_ != duty_.on)
    return;
  for (auto& [unit, in] : incoming_) {
    const bool copying = in.now == incoming::state::copying;
    if (!copying && in.now != incoming::state::following)
      continue;
    const std::uint64_t at = copying ? in.begun.step : held_.at(unit).step;
    in.behind = in.behind || at + arrival_backlog_max < newest;
    if (in.behind && !copying && !in.applying)
      start_over(unit);
    catch_up(unit);
  }
  go_on_arriving();
}

/// An arriving unit's part of the step in progress counts as prepared: the
/// seals may lead to it.
void job_core::seal_arrivals() {
  for (const auto& [unit, in] : incoming_) {
    SHOAL_ASSERT(!in.applying); // an apply in progress completes before halted
    if (in.now != incoming::state::following)
      continue;
    const std::uint64_t step = held_.at(unit).step + 1;
    if (prepared_.step == 0 && in.gradients.contains(step)) {
      prepared_ = {step, incoming_under_.since};
      prepared_units_.clear();
      own_vote_ = {};
      own_vote_.on = incoming_under_;
      own_vote_.step = step;
    }
    if (prepared_ == state_version{step, incoming_under_.since}
        && in.gradients.contains(step))
      prepared_units_.push_back(unit);
  }
  std::ranges::sort(prepared_units_);
  incoming_.clear();
}

void job_core::repeat_arrivals() {
  if (phase_ == phase::holding && now_ - held_since_ >= hold_max) {
    hold_not_before_ = now_ + hold_again_after;
    start_step();
  }
  if (incoming_.empty() || phase_ == phase::halting
      || incoming_under_ != duty_.on
      || now_ - arrivals_repeated_ < repeat_after)
    return;
  arrivals_repeated_ = now_;
  for (const auto& [unit, in] : incoming_) {
    if (in.now == incoming::state::asked)
      ask_for_arrival(unit, 0);
    if (in.now != incoming::state::following || in.applying)
      continue;
    const std::uint64_t step = held_.at(unit).step + 1;
    if (in.gradients.contains(step) && !norms_.contains(step)) {
      ask_for_arrival(unit, step);
      break; // the answer applies to all of them
    }
  }
  if (complete_said_ > 0)
    tell(duty_.participants, arrival_complete{duty_.on, complete_said_ - 1});
}

// ---- At the source ---------------------------------------------------------

void job_core::take(const peer_id& from, const arrival_wanted& m) {
  if (!duty_.mine(m.on) || !duty_.participates()
      || duty_.place->replicas.empty() || phase_ == phase::halting
      || m.unit >= config_.blocks + 2
      || arrival_source(*duty_.place, m.unit) != config_.self)
    return;
  const auto units = arriving_units(*duty_.place, from);
  if (!std::ranges::binary_search(units, m.unit))
    return;
  outgoing& out = outgoing_[{from, m.unit}];
  if (m.attempt > out.attempt) {
    out.attempt = m.attempt;
    out.wanted = true;
  } else if (m.attempt == out.attempt && m.attempt > 0 && !out.wanted) {
    act(job_action::send{
      from, arrival_begun{duty_.on, m.unit, m.attempt, out.begun}});
  }
  if (m.after == 0)
    return;
  for (const step_record& r : reports_.records())
    if (r.version.made == duty_.on.since && r.version.step >= m.after
        && r.version.step <= m.after + arrival_backlog_max)
      act(job_action::send{from, progress{duty_.on, r, 0, 0, {}, 0}});
}

/// At a step boundary: all own units are at the step before current_.
void job_core::serve_arrivals() {
  for (auto& [key, out] : outgoing_) {
    const auto& [to, unit] = key;
    if (!out.wanted)
      continue;
    out.wanted = false;
    out.begun = held_.at(unit);
    const bool paced = places_of(*duty_.place, unit) > config_.copies;
    act(
      job_action::send_unit{duty_.on.digest, unit, out.begun, to, true, paced});
    act(job_action::send{
      to, arrival_begun{duty_.on, unit, out.attempt, out.begun}});
  }
}

// ---- At all participants ---------------------------------------------------

void job_core::take(const peer_id& from, const arrival_complete& m) {
  if (!duty_.mine(m.on) || !duty_.participates()
      || arriving_units(*duty_.place, from).empty())
    return;
  std::uint64_t& at = arrived_at_[from];
  at = std::max(at, m.step);
  say_if_arrived();
}

/// Whether every receiver has all its units, as of `step` at least.
bool job_core::all_arrived(std::uint64_t step) const {
  return std::ranges::all_of(receivers(*duty_.place), [&](const peer_id& p) {
    const auto at = arrived_at_.find(p);
    return at != arrived_at_.end() && at->second >= step;
  });
}

/// Before step current_: receivers may be behind by what is on its way.
bool job_core::hold_for_arrivals() {
  const std::uint64_t step = current_ - 1;
  return !duty_.place->arriving.empty() && now_ >= hold_not_before_
         && all_arrived(step > 1 ? step - 1 : 0);
}

/// Only while steps stand still: a peer that halts then has the same state as
/// the receivers.
void job_core::say_if_arrived() {
  if (arrived_said_ || phase_ != phase::holding || !all_arrived(current_ - 1))
    return;
  arrived_said_ = true;
  act(job_action::arrivals_complete{duty_.on.since});
}

} // namespace shoal::core
