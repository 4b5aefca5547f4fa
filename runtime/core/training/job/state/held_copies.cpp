// runtime/core/training/job/state/held_copies.cpp -- the turn of copies, and their
// end.
#include "runtime/core/training/job/state/held_copies.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core {
namespace {

/// Whether the seals show copies of that version in all places that the
/// assignment wants: then they stay in use.
bool copied_everywhere(const duty& d, const state_version& v,
                       const std::map<peer_id, seal>& seals) {
  return std::ranges::all_of(d.participants, [&](const peer_id& p) {
    const auto at = seals.find(p);
    if (at == seals.end())
      return false;
    part_set here;
    for (const unit_copy& c : at->second.copies)
      if (c.version == v)
        here.add(c.unit);
    const member_parts& m = d.holds.of(p);
    return here.includes(m.held) && here.includes(m.follows);
  });
}

} // namespace

void held_copies::halt() {
  complete_ = false;
  lag_ = 0;
}

void held_copies::resume(const duty& d, const resume_decision& to,
                         const std::map<peer_id, seal>& seals,
                         job_actions& out) {
  keep({to.version, to.copies.value_or(to.version)}, out);
  complete_at_ = to.version.step;
  resumed_ = to.version;
  resumed_copies_ = to.copies;
  resumed_in_use_ = to.copies && copied_everywhere(d, *to.copies, seals);
}

/// Steps from one copy to the next. Copies become useful `lag` steps after they
/// have begun, when all are complete. Until the next copies are complete, at
/// most distance + lag - 1 committed steps would be run again; that is to be
/// `every`. Uses the newest lag that votes have shown, at first half of `every`.
std::uint64_t held_copies::distance(std::uint64_t every) const {
  const std::uint64_t lag = lag_ > 0 ? lag_ : every / 2;
  return every > lag ? every - std::max<std::uint64_t>(lag, 1) + 1 : 1;
}

void held_copies::take_if_due(const duty& d, const state_version& at,
                              bool committed, job_actions& out) {
  if (d.place->copy_every <= 1 || d.place->followers.empty())
    return;
  if (!newest_ && resumed_in_use_) {
    newest_ = resumed_copies_;
    newest_under_ = d.header.digest;
    missing_.clear();
    complete_ = true;
    complete_at_ = newest_->step;
  }
  if (!newest_ && !committed)
    return;
  if (newest_
      && (!complete_
          || at.step < newest_->step + distance(d.place->copy_every)))
    return;
  // Copies of the version that all went back to are needed until all peers have
  // it, which the first step under the assignment shows.
  if (const auto whole = newest_ ? newest_ : resumed_copies_)
    keep({*whole, committed ? *whole : resumed_}, out);
  newest_ = at;
  newest_under_ = d.header.digest;
  complete_ = false;
  const auto followed = d.holds.of(d.self).follows.list();
  missing_ = {d.units.begin(), d.units.end()};
  missing_.insert(followed.begin(), followed.end());
  out.emplace_back(
    job_action::take_copies{d.header.digest, at, d.units, followed});
}

void held_copies::step_begins(const duty& d) {
  last_vote_ = complete_at_ + d.place->copy_every;
}

bool held_copies::late(std::uint64_t step) const {
  return newest_ && !missing_.empty() && step > last_vote_;
}

bool held_copies::take(const job_event::copied& e) {
  // Copies completed before the halt are a fact that the seal may state.
  if (!newest_ || e.digest != newest_under_ || e.version != *newest_)
    return false;
  copies_[e.version].insert(e.unit);
  missing_.erase(e.unit);
  return true;
}

void held_copies::note(const std::vector<const vote*>& votes,
                       std::uint64_t step, job_actions& out) {
  if (!newest_ || complete_)
    return;
  complete_ = std::ranges::all_of(
    votes, [&](const vote* v) { return v->copied == newest_->step + 1; });
  if (!complete_)
    return;
  complete_at_ = newest_->step;
  lag_ = step - complete_at_;
  keep({*newest_}, out);
}

std::uint64_t held_copies::complete_here() const {
  return newest_ && missing_.empty() ? newest_->step + 1 : 0;
}

bool held_copies::has(const state_version& v, std::uint32_t unit) const {
  const auto at = copies_.find(v);
  return at != copies_.end() && at->second.contains(unit);
}

void held_copies::keep(std::vector<state_version> versions, job_actions& out) {
  const auto dropped = std::erase_if(copies_, [&](const auto& kept) {
    return std::ranges::find(versions, kept.first) == versions.end();
  });
  if (dropped > 0)
    out.emplace_back(job_action::drop_copies{std::move(versions)});
}

} // namespace shoal::core
