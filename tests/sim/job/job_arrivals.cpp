// tests/sim/job/job_arrivals.cpp -- units that arrive while steps run.
#include "runtime/core/planning/arrivals.hpp"
#include "tests/sim/job/job_world.hpp"

namespace shoal::sim {

void job_world::on(const ptr& p, const act::send_unit& a) {
  check(p->core.held().at(a.unit) == a.version, "sends another version");
  process::sending& out = p->sends[{a.to, a.unit}];
  out = {a, p->state.at(a.unit)};
  if (rng_.chance(15)) // its link is slow: too much is waiting
    out.last = a.version.step + rng_.below(12);
}

void job_world::on(const ptr& p, const act::receive_unit& a) {
  if (a.copy) {
    p->state.erase(a.unit);
    if (p->receives.contains(a.unit))
      ++result_.overtaken;
  }
  p->receives[a.unit] = {a, !a.copy, {}, {}};
  receive_gradients(p, a, a.version.step + 1);
  if (a.copy)
    receive_arrival(p, a);
}

process::sending*
job_world::sent_by_source(const ptr& p, const act::receive_unit& a) {
  const ptr& from = up_[a.from[0]];
  const auto at = from->sends.find({p->id, a.unit});
  const bool there = from->alive && at != from->sends.end()
                     && at->second.asked.digest == a.digest
                     && at->second.asked.version == a.version;
  return there ? &at->second : nullptr;
}

void job_world::receive_arrival(const ptr& p, const act::receive_unit& a) {
  const nanoseconds slow = rng_.chance(10) ? 900 * ms : 80 * ms;
  later(p, between(1 * ms, slow), [=, this] {
    process::sending* out = sent_by_source(p, a);
    if (!out) {
      receive_arrival(p, a);
      return;
    }
    p->state[a.unit] = bug_ == job_mutant::copy_too_late
                         ? up_[a.from[0]]->state.at(a.unit)
                         : out->hash;
    p->receives.at(a.unit).copied = true;
    ++result_.arrivals;
    input(p, ev::arrival_copied{a.digest, a.unit, a.version.step});
    if (p->core.held().contains(a.unit)
        && p->core.held().at(a.unit) == a.version)
      check_version(p, a.unit);
  });
}

/// As soon as the source has reduced them, in order, and there is room.
void job_world::receive_gradients(const ptr& p, const act::receive_unit& a,
                                  std::uint64_t step) {
  later(p, between(1 * ms, 30 * ms), [=, this] {
    process::receiving& in = p->receives.at(a.unit);
    if (in.asked.version != a.version)
      return; // the unit has started over
    const process::sending* out = sent_by_source(p, a);
    const ptr& from = up_[a.from[0]];
    if (!out || from->running_digest != a.digest || from->reduced_step < step
        || out->last < step || in.gradients.size() >= arrival_backlog_max) {
      receive_gradients(p, a, step);
      return;
    }
    in.gradients[step] = a.digest;
    if (!in.copied)
      in.early.insert(step);
    input(p, ev::arrival_reduced{a.digest, a.unit, step});
    receive_gradients(p, a, step + 1);
  });
}

void job_world::on(const ptr& p, const act::apply_arrived& a) {
  ++p->applying; // not interruptible
  after(between(1 * ms, 10 * ms), [=, this] {
    if (!p->alive)
      return;
    apply_unit(p, a.unit, a.step, a.grad_norm, &p->receives.at(a.unit));
    p->receives.at(a.unit).gradients.erase(a.step);
    input(p, ev::arrival_applied{a.digest, a.unit, a.step});
    if (p->core.held().contains(a.unit))
      check_version(p, a.unit);
    applied_one(p);
  });
}

void job_world::on(const ptr& p, const act::arrivals_complete& a) {
  say(name(p) + " says that all has arrived of " + std::to_string(a.since));
  after(between(1 * ms, 100 * ms), [=, this] {
    job_entry& job = view_.jobs.front();
    if (done_ || marked(job, mark_kind::arrived, 0) >= a.since)
      return;
    set_mark(job, {mark_kind::arrived, 0, a.since, 0});
    ++result_.arrived;
    new_view();
  });
}

} // namespace shoal::sim
