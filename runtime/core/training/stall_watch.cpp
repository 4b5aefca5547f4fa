// runtime/core/training/stall_watch.cpp -- budgets, questions, verdicts.
#include "runtime/core/training/stall_watch.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace shoal::core {
namespace {

/// "3.2 s"
std::string seconds(nanoseconds t) {
  const auto tenths = t / 100'000'000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

bool over_budget(const stall_report& r) {
  return r.computing > 0 && r.computing > r.budget
         && (!r.loading || 2 * r.idle >= r.budget); // SW-3
}

bool can_not_stop(const stall_report& r) {
  return r.halting && r.idle > std::max(r.budget, stall_watch::halt_min);
}

std::string at_step(const stall_report& r) {
  return r.where + (r.step > 0 ? ", step " + std::to_string(r.step) : "");
}

std::string why_guilty(const stall_report& r) {
  return over_budget(r)
           ? "one piece of its work takes " + seconds(r.computing) + ", budget "
               + seconds(r.budget) + " (" + at_step(r) + ")"
           : "it has not stopped for " + seconds(r.idle);
}

} // namespace

nanoseconds
stall_watch::piece_time(std::uint64_t bytes, std::uint64_t bytes_per_s) {
  const double rate =
    double(bytes_per_s > 0 ? bytes_per_s : assumed_disk_bytes_per_s);
  return nanoseconds(std::min(double(bytes) * 1e9 / rate, double(budget_max)));
}

nanoseconds stall_watch::disk_budget(const sight& s) {
  const nanoseconds piece =
    std::min(s.disk_predicted, budget_max / budget_factor);
  return std::max(piece * budget_factor, loading_min);
}

nanoseconds stall_watch::budget(const sight& s) const {
  if (s.loading)
    return std::max(disk_budget(s),
                    std::min(s.predicted, budget_max / budget_factor)
                      * budget_factor);
  const bool known = full_ || changes_ >= changes_min;
  nanoseconds longest = std::max(longest_[0], longest_[1]);
  if (!known || !s.steady)
    longest = std::max(longest, s.predicted);
  longest = std::min(longest, budget_max / budget_factor);
  const nanoseconds unproven =
    std::min(unproven_longest_, budget_max / unproven_factor);
  return std::max(
    {longest * budget_factor, unproven * unproven_factor, budget_min});
}

void stall_watch::moved(nanoseconds now) {
  moved_ = now;
  asking_.reset();
  judged_.reset();
  answers_.clear();
}

/// Counts the times between changes up to now.
void stall_watch::prove() {
  longest_[1] =
    std::max(longest_[1], std::exchange(unproven_longest_, nanoseconds{0}));
  changes_ += std::exchange(unproven_changes_, 0);
  if (changes_ < changes_kept)
    return;
  longest_ = {longest_[1], 0};
  changes_ = 0;
  full_ = true;
}

void stall_watch::look(const sight& s, nanoseconds now) {
  if (!s.halting)
    halting_.reset();
  else if (!halting_)
    halting_ = now;
  const bool progress = committed_ != s.committed;
  if (progress) {
    committed_ = s.committed;
    committed_at_ = now;
  }
  const bool loading = std::exchange(loading_, s.loading) || s.loading;
  if (s.header != header_) {
    header_ = s.header;
    longest_ = {std::max(longest_[0], longest_[1]), 0};
    changes_ = 0;
    full_ = false;
    unproven_longest_ = 0;
    unproven_changes_ = 0;
    moved(now);
    mark_ = s.mark;
  }
  const std::uint64_t step = s.step > 0 ? s.step : s.period;
  if (step > step_) {
    retries_ = 0;
    stuck_.clear();
  }
  step_ = step > 0 ? step : step_;
  if (!s.active || !active_) {
    active_ = s.active;
    moved(now);
    mark_ = s.mark;
    return;
  }
  if (s.mark != mark_) {
    mark_ = s.mark;
    if (loading) // proves nothing about the duration of steps
      return moved(now);
    unproven_longest_ = std::max(unproven_longest_, now - moved_);
    ++unproven_changes_;
    moved(now);
  }
  if (progress || s.step == 0)
    prove();
}

stall_report
stall_watch::report(const sight& s, nanoseconds now, bool asks) const {
  stall_report r;
  r.header = s.header;
  r.step = s.step;
  r.asks = asks;
  r.active = s.active;
  r.halting = s.halting;
  r.idle = now - (s.halting ? halting_.value_or(moved_) : moved_);
  r.budget = budget(s);
  r.loading = s.loading;
  r.computing = std::max<nanoseconds>({s.computing, s.loading ? s.disk : 0, 0});
  r.sending_to = s.sending_to;
  if (r.sending_to.size() > stall_peers_max)
    r.sending_to.resize(stall_peers_max);
  r.where = s.where.substr(0, stall_where_max);
  return r;
}

stall_watch::actions stall_watch::tick(const sight& s, nanoseconds now) {
  actions out;
  look(s, now);
  const stall_report own = report(s, now, false);
  if (!hung_reported_ && s.halting && (over_budget(own) || can_not_stop(own))) {
    hung_reported_ = true;
    out.emplace_back(
      hung{"the work of this peer can not be stopped: " + why_guilty(own)});
  }
  const nanoseconds at_disk = std::min(s.disk, now - committed_at_);
  if (!hung_reported_ && at_disk > disk_budget(s)) {
    hung_reported_ = true;
    out.emplace_back(hung{
      "its disk has been at one piece of work for " + seconds(s.disk)
      + ", budget " + seconds(disk_budget(s)) + " (" + at_step(own) + ")"});
  }
  if (!s.active || now - moved_ <= budget(s))
    return out;
  ask(s, now, out);
  if (s.header.digest != 0
      && std::ranges::find(s.sealers, self_) != s.sealers.end())
    judge(s, now, out);
  return out;
}

void stall_watch::ask(const sight& s, nanoseconds now, actions& out) {
  if (!asking_) {
    asking_ = now;
    asked_ = now - ask_every;
    known_ = s.header.digest;
    out.emplace_back(stalled{"nothing has moved for " + seconds(now - moved_)
                             + ", budget " + seconds(budget(s)) + " ("
                             + at_step(report(s, now, false)) + ")"});
  }
  if (now - asked_ < ask_every)
    return;
  asked_ = now;
  for (const peer_id& to : s.sealers)
    if (to != self_)
      out.emplace_back(send{to, report(s, now, true)});
}

stall_watch::actions
stall_watch::received(const peer_id& from, const stall_report& r,
                      const sight& s, nanoseconds now) {
  actions out;
  look(s, now);
  if (std::ranges::find(s.sealers, from) == s.sealers.end())
    return out;
  answers_[from] = {r, now};
  if (!r.asks)
    return out;
  out.emplace_back(send{from, report(s, now, false)});
  if (known_ != r.header.digest)
    out.emplace_back(asked{from});
  known_ = r.header.digest;
  return out;
}

void stall_watch::judge(const sight& s, nanoseconds now, actions& out) {
  if (judged_ && now - *judged_ < budget(s))
    return;
  std::vector<peer_id> others, silent;
  std::ranges::copy_if(s.sealers, std::back_inserter(others),
                       [&](const peer_id& p) { return p != self_; });
  for (const peer_id& p : others) {
    const auto at = answers_.find(p);
    // An answering peer repeats its answer every ask_every.
    if (at == answers_.end() || now - at->second.at > answer_max)
      silent.push_back(p);
  }
  if (!silent.empty() && now - *asking_ < answer_max)
    return;
  if (silent.size() == others.size() && others.size() > 1)
    return; // SW-1
  auto blame = [&](const peer_id& p, std::string why) {
    out.emplace_back(expel{p, std::move(why)});
    judged_ = now;
  };
  for (const peer_id& p : silent)
    blame(p, "it has not answered for "
               + seconds(
                 now - (answers_.contains(p) ? answers_.at(p).at : *asking_)));
  answers_[self_] = {report(s, now, false), now};
  bool patience = false;
  for (const auto& [p, a] : answers_) {
    const stall_report& r = a.report;
    if (now - a.at > answer_max)
      continue;
    if (r.header == s.header && (over_budget(r) || can_not_stop(r)))
      blame(p, why_guilty(r));
    else if (r.header != s.header || (r.active && 2 * r.idle < now - moved_)
             || r.computing > 0 || r.halting || r.loading)
      patience = true; // SW-3
  }
  if (!patience && judged_ != now)
    judge_waiting(s, now, out);
}

std::optional<stall_watch::link> stall_watch::stuck_link(const sight& s) {
  if (s.chain)
    return stuck_in_chain(s);
  std::optional<link> out; // the higher end first
  for (const auto& [p, a] : answers_)
    for (const peer_id& to : a.report.sending_to)
      if (to != p && std::ranges::find(s.sealers, to) != s.sealers.end())
        out = std::max(out.value_or(link{}),
                       link{std::max(p, to), std::min(p, to)});
  return out;
}

/// Those behind the stuck link wait because of it.
std::optional<stall_watch::link> stall_watch::stuck_in_chain(const sight& s) {
  for (const peer_id& p : s.sealers) {
    const auto at = answers_.find(p);
    if (at == answers_.end() || at->second.report.sending_to.empty())
      continue;
    const peer_id for_whom = at->second.report.sending_to.front();
    if (for_whom == p
        || std::ranges::find(s.sealers, for_whom) == s.sealers.end())
      continue;
    const std::uint32_t times = ++stuck_[p];
    return ++stuck_[for_whom] < times ? link{p, for_whom} : link{for_whom, p};
  }
  return std::nullopt;
}

/// No peer computes: a message is lost.
void stall_watch::judge_waiting(const sight& s, nanoseconds now, actions& out) {
  judged_ = now;
  const std::optional<link> stuck = stuck_link(s);
  if (retries_ < retries_max || !stuck) {
    ++retries_;
    std::string why = "all wait for each other";
    if (s.step > 0)
      why += " at step " + std::to_string(s.step);
    else if (stuck)
      why += ", " + short_name(stuck->second) + " and "
             + short_name(stuck->first) + " first";
    out.emplace_back(retry{s.header.since, std::move(why)});
    return;
  }
  out.emplace_back(
    expel{stuck->first, "what it and " + short_name(stuck->second)
                          + " exchange does not arrive, tried "
                          + std::to_string(retries_) + " times"});
}

std::string
to_text(const stall_watch::expel& e, const std::string& name, bool quorum) {
  return name
         + (quorum ? " holds the job up and is expelled: "
                   : " holds the job up; without a quorum it cannot be "
                     "expelled: ")
         + e.why;
}

std::string to_text(const stall_watch::retry& r, bool quorum) {
  return (quorum ? "the step is begun anew: "
                 : "the step stands still; without a quorum it cannot be begun "
                   "anew: ")
         + r.why;
}

std::string
to_text(const stall_watch::hung& h, const std::string& name, bool quorum) {
  return name
         + (quorum ? " holds the job up and is expelled: "
                   : " holds the job up and ends: ")
         + h.why;
}

} // namespace shoal::core
