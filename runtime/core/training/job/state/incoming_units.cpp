// runtime/core/training/job/state/incoming_units.cpp -- the way of each unit.
#include "runtime/core/training/job/state/incoming_units.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/planning/arrivals.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core {

void incoming_units::halt() {
  halting_ = true;
  norms_.clear();
  complete_ = 0;
}

void incoming_units::halted(const held_units& held, state_version& prepared,
                            std::vector<std::uint32_t>& units) {
  halting_ = false;
  for (const auto& [unit, in] : units_) {
    SHOAL_ASSERT(!in.applying); // an apply in progress completes before halted
    if (in.now != state::following)
      continue;
    const std::uint64_t step = held.at(unit).step + 1;
    if (prepared.step == 0 && in.gradients.contains(step)) {
      prepared = {step, under_.since};
      units.clear();
    }
    if (prepared == state_version{step, under_.since}
        && in.gradients.contains(step))
      units.push_back(unit);
  }
  std::ranges::sort(units);
  units_.clear();
}

void incoming_units::begin(const duty& d, nanoseconds now) {
  under_ = d.header;
  repeated_ = now;
  for (const part_index u : d.holds.of(d.self).arrives) {
    incoming& in = units_[u];
    in.from = d.holds.source(u).peer;
    in.places = d.holds.holders(u);
  }
}

void incoming_units::go_on(const duty& d, std::uint32_t unit,
                           const state_version& at, const held_units& held,
                           job_actions& out) {
  SHOAL_ASSERT(held.at(unit) == at);
  incoming& in = units_.at(unit);
  in.now = state::following;
  in.begun = at;
  out.emplace_back(
    job_action::receive_unit{d.header.digest, unit, at, in.from, false});
}

std::size_t incoming_units::here() const noexcept {
  return std::size_t(std::ranges::count_if(
    units_, [](const auto& of) { return of.second.now == state::following; }));
}

void incoming_units::move(const duty& d, const held_units& held,
                          job_actions& out) {
  if (units_.empty() || halting_)
    return;
  const std::uint64_t newest = norms_.empty() ? 0 : norms_.rbegin()->first;
  std::size_t coming = 0;
  std::uint64_t oldest = 0; // step + 1, of the units in state following; 0:
                            // none
  bool in_step = true;
  for (const auto& [unit, in] : units_) {
    coming += in.now == state::asked || in.now == state::copying;
    if (in.now != state::following)
      continue;
    const std::uint64_t step = held.at(unit).step;
    in_step = in_step && !in.behind && step + 1 >= newest; // gradients are on
                                                           // their way
    oldest = oldest == 0 ? step + 1 : std::min(oldest, step + 1);
  }
  in_step = in_step && std::ranges::none_of(units_, [](const auto& of) {
              return of.second.now == state::idle;
            });
  while (coming < arrivals_at_once && ask_for_next(d, out))
    ++coming;
  if (oldest == 0)
    oldest = newest + 1; // nothing could be moved
  if (!in_step || coming > 0 || oldest <= complete_)
    return;
  complete_ = oldest;
  send_to(d.participants, d.self, arrival_complete{d.header, oldest - 1}, out);
}

/// Asks first for units in the fewest places, from the source that sends least;
/// from a paced source one copy at a time. @returns false if there is none to
/// ask for
bool incoming_units::ask_for_next(const duty& d, job_actions& out) {
  std::map<peer_id, std::size_t> sending;
  for (const auto& [unit, in] : units_)
    sending[in.from] += in.now == state::asked || in.now == state::copying;
  incoming* next = nullptr;
  std::uint32_t which = 0;
  auto rank = [&](const incoming& in) {
    return std::pair(in.places, sending[in.from]);
  };
  for (auto& [unit, in] : units_)
    if (in.now == state::idle && (in.places <= copies_ || sending[in.from] == 0)
        && (!next || rank(in) < rank(*next))) {
      next = &in;
      which = unit;
    }
  if (!next)
    return false;
  next->now = state::asked;
  ++next->attempt;
  ask(d, which, 0, out);
  return true;
}

void incoming_units::ask(const duty& d, std::uint32_t unit, std::uint64_t after,
                         job_actions& out) const {
  const incoming& in = units_.at(unit);
  out.emplace_back(job_action::send{
    in.from, arrival_wanted{d.header, unit, in.attempt, after}});
}

incoming_units::incoming*
incoming_units::find(std::uint64_t digest, std::uint32_t unit) {
  const auto at = units_.find(unit);
  return at == units_.end() || digest != under_.digest ? nullptr : &at->second;
}

void incoming_units::take(const duty& d, const peer_id& from,
                          const arrival_begun& m, held_units& held,
                          job_actions& out) {
  const auto at = units_.find(m.unit);
  if (!d.mine(m.header) || under_ != d.header || at == units_.end())
    return;
  incoming& in = at->second;
  if (from != in.from || in.now != state::asked || m.attempt != in.attempt)
    return;
  held.forget(m.unit);
  in.now = state::copying;
  in.begun = m.version;
  out.emplace_back(
    job_action::receive_unit{d.header.digest, m.unit, m.version, from, true});
}

void incoming_units::take(const duty& d, const job_event::arrival_copied& e,
                          held_units& held, job_actions& out) {
  incoming* in = find(e.digest, e.unit);
  if (!in || in->now != state::copying || e.step != in->begun.step)
    return;
  held.set(e.unit, in->begun);
  in->now = state::following;
  if (in->behind)
    start_over(*in);
  else
    catch_up(d, e.unit, held, out);
  move(d, held, out);
}

void incoming_units::take(const duty& d, const job_event::arrival_reduced& e,
                          const held_units& held, job_actions& out) {
  incoming* in = find(e.digest, e.unit);
  if (!in || (in->now != state::copying && in->now != state::following)
      || e.step <= in->begun.step)
    return;
  in->gradients.insert(e.step);
  catch_up(d, e.unit, held, out);
}

void incoming_units::catch_up(const duty& d, std::uint32_t unit,
                              const held_units& held, job_actions& out) {
  incoming& in = units_.at(unit);
  if (halting_ || in.now != state::following || in.applying || in.behind)
    return;
  const std::uint64_t step = held.at(unit).step + 1;
  const auto norm = norms_.find(step);
  if (norm == norms_.end() || !in.gradients.contains(step))
    return;
  in.applying = true;
  out.emplace_back(
    job_action::apply_arrived{d.header.digest, unit, step, norm->second});
}

void incoming_units::take(const duty& d, const job_event::arrival_applied& e,
                          held_units& held, job_actions& out) {
  incoming* in = find(e.digest, e.unit);
  if (!in)
    return;
  SHOAL_ASSERT(in->applying && held.at(e.unit).step + 1 == e.step); // J-4
  in->applying = false;
  in->gradients.erase(e.step);
  held.set(e.unit, {e.step, under_.since});
  if (in->behind)
    start_over(*in);
  else
    catch_up(d, e.unit, held, out);
  move(d, held, out);
}

void incoming_units::start_over(incoming& in) {
  in.behind = false;
  in.gradients.clear();
  in.now = in.attempt < arrival_tries_max ? state::idle : state::left;
}

void incoming_units::note(const duty& d, const step_record& r,
                          const held_units& held, job_actions& out) {
  if (!d.place || d.place->arriving.empty() || halting_
      || r.version.made != d.header.since || r.replicas == 0)
    return;
  norms_[r.version.step] = applied_norm(r);
  const std::uint64_t newest = norms_.rbegin()->first;
  while (norms_.begin()->first + arrival_backlog_max + 1 < newest)
    norms_.erase(norms_.begin());
  if (under_ != d.header)
    return;
  for (auto& [unit, in] : units_) {
    const bool copying = in.now == state::copying;
    if (!copying && in.now != state::following)
      continue;
    const std::uint64_t at = copying ? in.begun.step : held.at(unit).step;
    in.behind = in.behind || at + arrival_backlog_max < newest;
    if (in.behind && !copying && !in.applying)
      start_over(in);
    catch_up(d, unit, held, out);
  }
  move(d, held, out);
}

void incoming_units::repeat(const duty& d, const held_units& held,
                            nanoseconds now, job_actions& out) {
  if (units_.empty() || halting_ || under_ != d.header
      || now - repeated_ < job_repeat_after)
    return;
  repeated_ = now;
  for (const auto& [unit, in] : units_) {
    if (in.now == state::asked)
      ask(d, unit, 0, out);
    if (in.now != state::following || in.applying)
      continue;
    const std::uint64_t step = held.at(unit).step + 1;
    if (in.gradients.contains(step) && !norms_.contains(step)) {
      ask(d, unit, step, out);
      break; // the answer applies to all of them
    }
  }
  if (complete_ > 0)
    send_to(d.participants, d.self, arrival_complete{d.header, complete_ - 1},
            out);
}

} // namespace shoal::core
