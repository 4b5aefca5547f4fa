// runtime/core/training/job/job_reports.cpp -- reports each committed step once, in
// order, and asks for steps that were missed.
//
// A peer that was away for a while, or that joins, hears of a new step before
// the steps between. The report of the new step waits until other peers have
// sent those, or until some were asked in vain. Only the report waits: the step
// counts as committed at once, and the reporter broadcasts it at once.
#include "runtime/core/training/job/job_core.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core {

/// Some peer may have missed steps. The reporter sends them again or, if it has
/// missed some itself, the first peer that has not.
void job_core::tell_records() {
  const seal* teller = &seals_.begin()->second;
  const seal* oldest = teller;
  peer_id who = seals_.begin()->first;
  for (const auto& [peer, s] : seals_) {
    const bool better = age(s.last.version) > age(teller->last.version)
                        || (age(s.last.version) == age(teller->last.version)
                            && peer == duty_.place->reporter.peer);
    if (better) {
      teller = &s;
      who = peer;
    }
    if (age(s.last.version) < age(oldest->last.version))
      oldest = &s;
  }
  if (who != config_.self)
    return;
  // Peers that do not seal may lack the newest, too.
  const std::size_t newest = std::min(records_.size(), records_told_min);
  for (std::size_t i = 0; i < records_.size(); ++i)
    if (i + newest >= records_.size()
        || records_[i].version.step > oldest->last.version.step)
      act(job_action::committed{records_[i], true, duty_.on});
}

/// Seals or this peer may know more commits than what is left. If peers that
/// went on since then have seen the loss, they report it.
void job_core::say_if_lost(const resume_decision& d) {
  std::uint64_t last = std::max(d.last, last_.version.step);
  resumed_ = d.version;
  resumed_in_ = duty_.on.since;
  // A loss of more than an interval was accepted: no holder came back in time.
  const bool accepted = d.top > d.version.step + config_.checkpoint_every;
  top_ = accepted ? d.version.step : std::max(top_, d.top);
  if (d.version.step >= last)
    return;
  report_all();
  // Our own step may be new here: rolled forward to, or run while we were away.
  const bool told = age(told_) >= age(d.version);
  const bool tell = d.known && !told && d.version.step > 0;
  const std::uint64_t kept = d.version.step - (tell ? 1 : 0);
  if (d.version.step < d.last)
    act(job_action::lost_state{d.lost_unit, d.last, d.version.step, kept});
  else
    act(job_action::went_back{last, kept});
  std::erase_if(records_,
                [&](const step_record& r) { return r.version.step > kept; });
  last_ = {};
  last_.version = told_ = {kept, tell ? d.version.made : duty_.on.since};
}

/// Stores a committed step, and reports it when its turn has come.
void job_core::publish(const step_record& r, const progress& said) {
  if (age(r.version) <= age(told_)) // J-3
    return;
  // Old news of steps that were given up since.
  if (r.version.step > resumed_.step && r.version.made < resumed_in_)
    return;
  if (age(r.version) > age(last_.version)) {
    if (r.version.step <= last_.version.step) // steps ahead of it are given up
      report_all();
    last_ = r;
  }
  remember(r);
  const bool broadcast =
    duty_.place && duty_.place->reporter.peer == config_.self;
  if (r.version.step > told_.step + 1 && told_.step > 0
      && ahead_.size() < records_kept_max && who_may_tell()) {
    if (ahead_.try_emplace(age(r.version), r, said).second)
      act(job_action::committed{r, broadcast, duty_.on});
    if (records_asked_ == 0)
      ask_for_records();
    return;
  }
  report(r, said);
  act(job_action::committed{r, broadcast, duty_.on});
  while (!ahead_.empty()
         && ahead_.begin()->second.first.version.step <= told_.step + 1) {
    const auto next = ahead_.extract(ahead_.begin()).mapped();
    report(next.first, next.second);
  }
  if (ahead_.empty())
    records_asked_ = 0;
}

/// For peers that miss it; drops the records that it replaces.
void job_core::remember(const step_record& r) {
  std::erase_if(records_, [&](const step_record& old) {
    return old.version.step >= r.version.step
           && age(old.version) <= age(r.version);
  });
  records_.insert(std::ranges::lower_bound(
                    records_, age(r.version), {},
                    [](const step_record& x) { return age(x.version); }),
                  r);
  if (records_.size() > records_kept_max)
    records_.erase(records_.begin());
}

void job_core::report(const step_record& r, const progress& said) {
  if (age(r.version) <= age(told_))
    return;
  if (r.version.step <= told_.step) // we were no sealer
    act(job_action::went_back{told_.step, r.version.step - 1});
  told_ = r.version;
  act(job_action::step_known{r, said.took, said.bubble_permille});
}

/// Reports everything, whatever is still missing.
void job_core::report_all() {
  for (const auto& [at, what] : std::exchange(ahead_, {}))
    report(what.first, what.second);
  records_asked_ = 0;
}

std::optional<peer_id> job_core::who_may_tell() const {
  std::vector<peer_id> others;
  if (duty_.place && duty_.place->reporter.peer != config_.self)
    others.push_back(duty_.place->reporter.peer);
  for (const peer_id& p : duty_.participants)
    if (p != config_.self && (others.empty() || p != others.front()))
      others.push_back(p);
  if (others.empty())
    return {};
  return others[records_asked_ % others.size()];
}

/// The first time, and on ticks.
void job_core::ask_for_records() {
  const std::optional<peer_id> whom = who_may_tell();
  if (!whom || records_asked_ >= records_tries_max)
    return report_all();
  ++records_asked_;
  records_asked_at_ = now_;
  act(job_action::send{*whom, records_wanted{duty_.on, told_}});
}

void job_core::repeat_records() {
  if (!ahead_.empty() && now_ - records_asked_at_ >= repeat_after)
    ask_for_records();
}

void job_core::take(const peer_id& from, const records_wanted& m) {
  for (const step_record& r : records_)
    if (age(r.version) > age(m.after))
      act(job_action::send{from, progress{duty_.on, r, 0, 0, {}, 0}});
}

} // namespace shoal::core
