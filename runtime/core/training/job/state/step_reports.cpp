// runtime/core/training/job/state/step_reports.cpp -- the order of reports, and the
// records kept for peers that miss some.
#include "runtime/core/training/job/state/step_reports.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core {

std::uint64_t step_reports::top() const noexcept {
  return std::max(top_, last_.version.step);
}

void step_reports::tell_again(const duty& d,
                              const std::map<peer_id, seal>& seals,
                              const std::vector<peer_id>& members,
                              job_actions& out) const {
  const seal* teller = &seals.begin()->second;
  const seal* oldest = teller;
  peer_id sender = seals.begin()->first;
  for (const auto& [peer, s] : seals) {
    const bool better = age(s.last.version) > age(teller->last.version)
                        || (age(s.last.version) == age(teller->last.version)
                            && peer == d.place->reporter.peer);
    if (better) {
      teller = &s;
      sender = peer;
    }
    if (age(s.last.version) < age(oldest->last.version))
      oldest = &s;
  }
  if (sender != d.self)
    return;
  // Peers that do not seal may lack the newest, too.
  const std::size_t newest = std::min(records_.size(), records_told_min);
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (i + newest < records_.size()
        && records_[i].version.step <= oldest->last.version.step)
      continue;
    out.emplace_back(job_action::committed{records_[i], true, d.header});
    if (const eval_result* const r = eval_of(records_[i]))
      send_to(members, d.self, *r, out);
  }
}

bool step_reports::keep(const eval_result& r) {
  const bool full = evals_.size() >= records_kept_max;
  if ((full && age(r.version) < evals_.begin()->first)
      || !evals_.try_emplace(age(r.version), r).second)
    return false;
  if (evals_.size() > records_kept_max)
    evals_.erase(evals_.begin());
  return true;
}

const eval_result* step_reports::eval_of(const step_record& r) const {
  const auto at = evals_.find(age(r.version));
  return at == evals_.end() ? nullptr : &at->second;
}

void step_reports::resume(const duty& d, const resume_decision& to,
                          std::uint64_t interval, job_actions& out) {
  const std::uint64_t last = std::max(to.last, last_.version.step);
  resumed_ = to.version;
  resumed_in_ = d.header.since;
  // A loss of more than an interval was accepted: no holder came back in time.
  const bool accepted = to.top > to.version.step + interval;
  top_ = accepted ? to.version.step : std::max(top_, to.top);
  if (to.version.step >= last)
    return;
  report_all(out);
  // Our own step may be new here: rolled forward to, or run while we were away.
  const bool told = age(reported_) >= age(to.version);
  const bool tell = to.known && !told && to.version.step > 0;
  const std::uint64_t kept = to.version.step - (tell ? 1 : 0);
  if (to.version.step < to.last)
    out.emplace_back(
      job_action::lost_state{to.lost_unit, to.last, to.version.step, kept});
  else
    out.emplace_back(job_action::went_back{last, kept});
  std::erase_if(records_,
                [&](const step_record& r) { return r.version.step > kept; });
  std::erase_if(evals_,
                [&](const auto& e) { return e.second.version.step > kept; });
  last_ = {};
  last_.version = reported_ = {kept, tell ? to.version.made : d.header.since};
}

void step_reports::publish(const duty& d, const step_record& r,
                           const progress& measured, nanoseconds now,
                           job_actions& out) {
  if (age(r.version) <= age(reported_)) // J-3
    return;
  // Old news of steps that were given up since.
  if (r.version.step > resumed_.step && r.version.made < resumed_in_)
    return;
  if (age(r.version) > age(last_.version)) {
    if (r.version.step <= last_.version.step) // steps ahead of it are given up
      report_all(out);
    last_ = r;
  }
  remember(r);
  const bool broadcast = d.place && d.place->reporter.peer == d.self;
  if (r.version.step > reported_.step + 1 && reported_.step > 0
      && ahead_.size() < records_kept_max && next_to_ask(d)) {
    if (ahead_.try_emplace(age(r.version), r, measured).second)
      out.emplace_back(job_action::committed{r, broadcast, d.header});
    if (asked_ == 0)
      ask(d, now, out);
    return;
  }
  report(r, measured, out);
  out.emplace_back(job_action::committed{r, broadcast, d.header});
  while (!ahead_.empty()
         && ahead_.begin()->second.first.version.step <= reported_.step + 1) {
    const auto next = ahead_.extract(ahead_.begin()).mapped();
    report(next.first, next.second, out);
  }
  if (ahead_.empty())
    asked_ = 0;
}

/// For peers that miss it; drops the records that it replaces.
void step_reports::remember(const step_record& r) {
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

void step_reports::report(const step_record& r, const progress& measured,
                          job_actions& out) {
  if (age(r.version) <= age(reported_))
    return;
  if (r.version.step <= reported_.step) // we were no sealer
    out.emplace_back(job_action::went_back{reported_.step, r.version.step - 1});
  reported_ = r.version;
  out.emplace_back(
    job_action::step_known{r, measured.took, measured.bubble_permille});
}

void step_reports::report_all(job_actions& out) {
  for (const auto& [at, what] : std::exchange(ahead_, {}))
    report(what.first, what.second, out);
  asked_ = 0;
}

/// The reporter first, then the participants.
std::optional<peer_id> step_reports::next_to_ask(const duty& d) const {
  std::vector<peer_id> others;
  if (d.place && d.place->reporter.peer != d.self)
    others.push_back(d.place->reporter.peer);
  for (const peer_id& p : d.participants)
    if (p != d.self && (others.empty() || p != others.front()))
      others.push_back(p);
  if (others.empty())
    return {};
  return others[asked_ % others.size()];
}

/// The first time, and on ticks.
void step_reports::ask(const duty& d, nanoseconds now, job_actions& out) {
  const std::optional<peer_id> peer = next_to_ask(d);
  if (!peer || asked_ >= records_tries_max)
    return report_all(out);
  ++asked_;
  asked_at_ = now;
  out.emplace_back(
    job_action::send{*peer, records_wanted{d.header, reported_}});
}

void step_reports::repeat(const duty& d, nanoseconds now, job_actions& out) {
  if (!ahead_.empty() && now - asked_at_ >= job_repeat_after)
    ask(d, now, out);
}

void step_reports::answer(const duty& d, const peer_id& from,
                          const records_wanted& m, job_actions& out) const {
  for (const step_record& r : records_) {
    if (age(r.version) <= age(m.after))
      continue;
    out.emplace_back(
      job_action::send{from, progress{d.header, r, 0, 0, {}, 0}});
    if (const eval_result* const e = eval_of(r))
      out.emplace_back(job_action::send{from, *e});
  }
}

} // namespace shoal::core
