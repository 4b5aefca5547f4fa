// runtime/core/training/job/job_copies.cpp -- copies of units: when they are taken,
// and when older ones may be dropped.
#include "runtime/core/training/job/job_core.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core {

/// Whether the seals show copies of that version in all places that this
/// assignment wants: then they stay in use.
bool job_core::copied_everywhere(const state_version& v) const {
  return std::ranges::all_of(duty_.participants, [&](const peer_id& p) {
    const auto at = seals_.find(p);
    if (at == seals_.end())
      return false;
    std::set<std::uint32_t> here;
    for (const unit_copy& c : at->second.copies)
      if (c.version == v)
        here.insert(c.unit);
    return std::ranges::includes(here, units_of(*duty_.place, p))
           && std::ranges::includes(here, followed_units(*duty_.place, p));
  });
}

/// Steps from one copy to the next. Copies become useful `lag` steps after they
/// have begun, when all are complete. Until the next copies are complete, at
/// most distance + lag - 1 committed steps would be run again; that is to be
/// copy_every. Uses the newest lag that votes have shown, at first half of
/// copy_every.
std::uint64_t job_core::copy_distance() const {
  const std::uint64_t every = duty_.place->copy_every;
  const std::uint64_t lag = copy_lag_ > 0 ? copy_lag_ : every / 2;
  return every > lag ? every - std::max<std::uint64_t>(lag, 1) + 1 : 1;
}

/// Whether the vote for this step must wait until our own copies in progress
/// are here: otherwise one step too many could have to run again. So the bound
/// holds however long copies take, at the cost of waiting.
bool job_core::copies_late() const {
  return copying_ && !to_copy_.empty() && current_ > uncopied_max_;
}

/// All participants get the same result, since it depends on the assignment,
/// the seals and votes that all have. No copies are taken before the first step
/// of an assignment is committed: all wait for that step, and copies would
/// delay it.
void job_core::take_copies_if_due(const state_version& at) {
  if (duty_.place->copy_every <= 1 || duty_.place->followers.empty()
      || last_step(at.step))
    return;
  if (!copying_ && decision_ && decision_->copies
      && copied_everywhere(*decision_->copies)) {
    copying_ = decision_->copies;
    copying_under_ = duty_.on;
    to_copy_.clear();
    copies_complete_ = true;
    copies_at_ = copying_->step;
  }
  if (!copying_ && !committed_here_)
    return;
  if (copying_
      && (!copies_complete_ || at.step < copying_->step + copy_distance()))
    return;
  // Copies of the version that all went back to are needed until all peers have
  // it, which the first step under the assignment shows.
  if (const auto whole = copying_    ? copying_
                         : decision_ ? decision_->copies
                                     : std::nullopt)
    keep_copies({*whole, committed_here_ ? *whole : decision_->version});
  copying_ = at;
  copying_under_ = duty_.on;
  copies_complete_ = false;
  const auto followed = followed_units(*duty_.place, config_.self);
  to_copy_ = {duty_.units.begin(), duty_.units.end()};
  to_copy_.insert(followed.begin(), followed.end());
  act(job_action::take_copies{duty_.on.digest, at, duty_.units, followed});
}

void job_core::on(const job_event::copied& e) {
  // Copies completed before the halt are a fact that the seal may state.
  if (!copying_ || e.digest != copying_under_.digest || e.version != *copying_)
    return;
  copies_[e.version].insert(e.unit);
  to_copy_.erase(e.unit);
  if (late_ && !copies_late())
    on(*std::exchange(late_, std::nullopt));
}

/// Drops older copies only when all have reported that the newer are complete.
void job_core::note_copies(const std::vector<const vote*>& votes) {
  if (!copying_ || copies_complete_)
    return;
  copies_complete_ = std::ranges::all_of(
    votes, [&](const vote* v) { return v->copied == copying_->step + 1; });
  if (!copies_complete_)
    return;
  copies_at_ = copying_->step;
  copy_lag_ = current_ - copies_at_;
  keep_copies({*copying_});
}

void job_core::keep_copies(std::vector<state_version> versions) {
  const auto dropped = std::erase_if(copies_, [&](const auto& kept) {
    return std::ranges::find(versions, kept.first) == versions.end();
  });
  if (dropped > 0)
    act(job_action::drop_copies{std::move(versions)});
}

} // namespace shoal::core
