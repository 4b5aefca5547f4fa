// tests/sim/job/job_checks.cpp -- checks of adopting, committing and ending.
#include "runtime/core/training/ledger.hpp"
#include "tests/sim/job/job_world.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace shoal::sim {

void job_world::check_version(const ptr& p, std::uint32_t unit) {
  state_version v = p->core.held().at(unit);
  note(p->state.at(unit));
  if (rotten(p, unit))
    return;
  auto [at, fresh] = hashes_.try_emplace({v, unit}, p->state.at(unit));
  check(fresh || at->second == p->state.at(unit) || two_norms_.contains(v),
        name(p) + " holds unit " + std::to_string(unit) + " at step "
          + std::to_string(v.step) + " with another hash");
}

bool job_world::reachable(const state_version& v, const island_place& place) {
  for (std::uint32_t u = 0; u < config_.blocks + 2; ++u) {
    bool found = false;
    for (auto& [n, p] : up_) {
      bool seals =
        p->alive
        && std::ranges::find(place.sealers, member_id{p->id, p->incarnation})
             != place.sealers.end();
      auto at = p->core.held().find(u);
      auto copy = p->core.copies().find(v);
      found =
        found
        || (seals && copy != p->core.copies().end() && copy->second.contains(u))
        || (seals && at != p->core.held().end()
            && (at->second == v
                || (at->second.step + 1 == v.step && p->prepared == v
                    && p->prepared_units.contains(u))));
    }
    if (!found)
      return false;
  }
  return true;
}

void job_world::on(const ptr& p, const act::adopt& a) {
  p->must_say = p->reported.step > a.from.step;
  p->keepers = a.place.keepers.size();
  for (const auto& [u, in] : p->receives) // arrived units are like other units
    check(in.copied || !p->core.held().contains(u),
          "a unit of which half has come passes for one");
  p->kept = std::exchange(p->receives, {});
  auto [at, fresh] = resumed_.try_emplace(a.digest, a.from);
  check(at->second == a.from, "sealers resume at different versions");
  if (!fresh)
    return;
  say(name(p) + " adopts: resume at " + std::to_string(a.from.step) + " made "
      + std::to_string(a.from.made));
  std::uint64_t tip =
    chain_.empty() ? config_.origin_step : chain_.back().version.step;
  if (a.from.step < tip) {
    check(!reachable(chain_.back().version, a.place),
          "step " + std::to_string(tip) + " is given up though all is there");
    check_loss(a, tip);
    ++result_.losses;
    while (!chain_.empty() && chain_.back().version.step > a.from.step)
      chain_.pop_back();
  } else if (a.from.step > tip) {
    for (auto& [key, saved] : checkpoints_)
      if (saved.step == a.from.step && a.from.made == a.place.since) {
        chain_ = saved.chain; // a keeper returned with more than was left
        return;
      }
    ++result_.forwards;
    rolled_.insert(a.from);
    check(a.from.step == tip + 1, "rolls forward by more than one step");
  }
}

/// The newest published checkpoint that is not damaged is on some disk: no more
/// steps are run again than an interval has, or than that checkpoint lacks.
void job_world::check_loss(const act::adopt& a, std::uint64_t tip) {
  state_version known; // older ones belong to steps that were given up since
  checkpoint_ref newest;
  for (const member_id& m : a.place.sealers)
    if (const ptr& p = up_[m.peer[0]]; age(p->last.version) > age(known))
      known = p->last.version;
  for (const member_id& m : a.place.sealers) {
    const ptr& p = up_[m.peer[0]];
    if (!p->alive || p->incarnation != m.incarnation)
      continue;
    // A core remembers the newest published checkpoints, and those that it
    // holds: these may belong to a run that began anew since.
    std::set<checkpoint_ref> remembered = p->heard;
    while (remembered.size() > known_checkpoints::heard_max)
      remembered.erase(remembered.begin());
    for (const auto& [c, lacks] : p->saved)
      remembered.insert(c);
    for (const checkpoint_ref& c : remembered)
      if (c.step <= std::min(tip, known.step) && !is_rotten(c)
          && on_some_disk(c))
        newest = std::max(newest, c);
  }
  check(known.step <= a.from.step + config_.checkpoint_every
          || a.from.step >= newest.step,
        "goes back to step " + std::to_string(a.from.step)
          + " though a checkpoint of step " + std::to_string(newest.step)
          + " was published");
}

void job_world::on(const ptr& p, const act::lost_state& a) {
  say(name(p) + " LOST: " + std::to_string(a.last) + " -> "
      + std::to_string(a.resume));
  p->must_say = false;
  p->reported.step = a.kept;
}

void job_world::on(const ptr& p, const act::went_back& a) {
  say(name(p) + " went back: " + std::to_string(a.last) + " -> "
      + std::to_string(a.kept));
  p->must_say = false;
  p->reported.step = a.kept;
}

void job_world::on(const ptr& p, const act::step_known& a) {
  const state_version& v = a.record.version;
  check(age(v) > age(p->reported) && v.step > p->reported.step,
        name(p) + " reports a step out of order");
  p->reported = v;
  p->last = a.record;
  p->top = std::max(p->top, v.step);
}

static std::uint64_t bits(double x) {
  return std::bit_cast<std::uint64_t>(x);
}

/// If state is corrupted, the norms of its holders differ, and the remaining
/// part of a prepared step may have either one.
void job_world::note_two_norms(const state_version& v) {
  check(result_.rots > 0
          && std::ranges::any_of(
            resumed_, [&](const auto& to) { return to.second == v; }),
        "a step has two losses or norms");
  two_norms_.insert(v);
}

/// At an applied step: a peer that has heard that others committed it no longer
/// reports it.
void job_world::check_applied(const state_version& v, double norm) {
  const auto at = known_.find(v);
  if (at != known_.end() && bits(applied_norm(at->second)) != bits(norm))
    note_two_norms(v);
}

void job_world::on(const ptr& p, const act::committed& a) {
  const step_record& r = a.record;
  note(r.loss);
  note(r.grad_norm);
  note(r.data);
  if (a.publish)
    for (const member& m : view_.members)
      if (m.id.peer != p->id)
        send(p, m.id.peer, progress{a.header, r, 0.1, 10, 5});
  auto [at, fresh] = known_.try_emplace(r.version, r);
  if (bits(at->second.loss) != bits(r.loss)
      || bits(at->second.grad_norm) != bits(r.grad_norm))
    note_two_norms(r.version);
  std::vector<std::uint64_t> samples;
  for (std::uint32_t m = 0; m < config_.microbatches; ++m)
    samples.push_back(mix(r.version.step, m));
  check(r.data == digest_of_step(samples), "a step used other samples");
  if (!fresh)
    return;
  std::uint64_t tip =
    chain_.empty() ? config_.origin_step : chain_.back().version.step;
  say("step " + std::to_string(r.version.step) + " committed");
  check(r.version.step == tip + 1, "step " + std::to_string(r.version.step)
                                     + " committed after "
                                     + std::to_string(tip));
  const bool finite = std::isfinite(r.loss) && std::isfinite(r.grad_norm);
  check((r.bad > 0) == !finite,
        "a step that is not finite is not marked, or another one is");
  check(r.bad <= (chain_.empty() ? 0 : chain_.back().bad) + 1,
        "more bad steps in a row than there were");
  result_.bad += r.bad > 0;
  chain_.push_back(r);
  look_for_differences(r);
  ++result_.steps;
}

void job_world::on(const ptr& p, const act::finished& a) {
  say(name(p) + " finished " + std::to_string(a.step));
  const bool completed = a.reason == stop_reason::completed;
  const bool diverged = a.reason == stop_reason::diverged;
  check(completed  ? a.step == config_.total_steps
        : diverged ? chain_.back().bad >= config_.max_bad_steps
                   : drained_,
        "finished for no reason");
  const island_place* place = assignment_of(digest_of(
    view_.previous.empty() ? island_place{} : view_.previous[0].islands[0]));
  if (done_ || !place || place->reporter.peer != p->id)
    return;
  check(!chain_.empty() ? chain_.back().version.step == a.step : a.step == 0,
        "finished at a step that is not committed");
  result_.diverged += diverged;
  if (config_.checkpoint_at_end && !diverged) {
    const auto saved = std::ranges::any_of(up_, [&](const auto& n) {
      return std::ranges::any_of(n.second->saved, [&](const auto& c) {
        return c.first.step == a.step
               && in_stores(c.first, std::min<std::size_t>(2, p->keepers),
                            false);
      });
    });
    check(saved, "finished with the last checkpoint in too few stores");
  }
  done_ = true;
  view_.jobs.front().state = job_state::done;
  new_view();
}

void job_world::on(const ptr& p, const act::ended&) {
  check(p->state.empty() && p->core.held().empty() && p->copies.empty(),
        "state left behind");
  p->over = true;
}

} // namespace shoal::sim
