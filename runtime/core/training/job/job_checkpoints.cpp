// runtime/core/training/job/job_checkpoints.cpp -- a job's checkpoints: when they
// begin, which peers make and keep them, and what is known of them.
//
// Votes and seals say which disks refuse. From that and the assignment all
// peers find the same publisher and writers (shards.hpp). Each peer decides by
// itself whether it keeps a checkpoint, from the publisher's report and from
// what keepers have: a copy too many or too few for a while does no harm.
#include "runtime/core/training/job/job_core.hpp"
#include "runtime/core/training/shards.hpp"

#include <algorithm>

namespace shoal::core {

// Begun.

/// A checkpoint that is in too few stores is made again.
void job_core::resume_pace(const resume_decision& d) {
  unable_ = d.unable;
  const bool saved = d.checkpoint.manifest != blob_digest{};
  pace_.resume(saved ? d.checkpoint.step : config_.origin_step,
               d.checkpoint_lag, d.from == resume_decision::source::checkpoint);
  checkpoint_again_ = saved && d.checkpoint.step == d.version.step
                      && !d.checkpointed && config_.checkpoint_every > 0;
}

bool job_core::publishing() const {
  return publisher_ == config_.self && pace_.under_way(current_);
}

void job_core::note_saving(const std::map<peer_id, vote>& votes) {
  std::uint64_t lag = 0;
  bool writing = false;
  unable_.clear();
  for (const auto& [peer, v] : votes) {
    lag = std::max(lag, v.checkpoint_lag);
    writing = writing || v.writing;
    if (v.unable)
      unable_.push_back(peer);
  }
  pace_.heard(lag, writing);
  if (slow_said_ || bad_run_ > 0 || !pace_.slow(current_))
    return;
  slow_said_ = true;
  act(job_action::checkpoints_slow{current_, pace_.agreed_lag()});
}

void job_core::begin_checkpoint(std::uint64_t step) {
  pace_.begun(step);
  publisher_ = publisher_of(*duty_.place, unable_);
  left_out_[step] = unable_;
  if (left_out_.size() > begun_max)
    left_out_.erase(left_out_.begin());
  act(job_action::run_checkpoint{duty_.on.digest, step, last_step(step),
                                 unable_, publisher_});
}

/// For the last checkpoint no vote can say that other peers are to make it.
bool job_core::should_hand_over() const {
  return phase_ == phase::done && duty_.participates() && !finished_
         && checkpoint_due(current_ - 1) && checkpoint_told_ < current_
         && !std::ranges::binary_search(unable_, config_.self)
         && others_can_save(*duty_.place, config_.self, unable_);
}

// Published.

void job_core::on(const job_event::checkpointed& e) {
  if (!decision_ || e.digest != duty_.on.digest || e.step >= current_
      || !duty_.participates())
    return;
  // A slow checkpoint may end after a later one.
  const bool late = newer_told(duty_.on, e.step);
  if (late
      && (!e.known || last_checkpoint_.checkpoint.manifest != blob_digest{}))
    return;
  checkpoint_published m{
    duty_.on, {e.step, {}, duty_.on.since}, e.bytes, e.why, e.trying, e.refused,
    {}};
  if (const auto at = left_out_.find(e.step); at != left_out_.end())
    m.unable = at->second;
  if (e.known) {
    if (!late)
      pace_.published(e.step, current_);
    m.checkpoint.manifest = e.manifest;
    known_.hold(m.checkpoint, config_.self);
    act(job_action::checkpoint_known{m.checkpoint, config_.self, e.bytes,
                                     m.unable});
  } else {
    pace_.ended(e.step);
    say_failed(config_.self, m);
  }
  tell(members_, m);
  if (!late) {
    last_checkpoint_ = std::move(m);
    published_by_ = config_.self;
  }
  if (e.known || !e.trying)
    checkpoint_told(e.step);
  on(job_event::snapshot_taken{e.digest, e.step}); // there is a result
  finish_if_told();
}

void job_core::say_failed(const peer_id& from, const checkpoint_published& m) {
  const peer_id& at = m.refused == peer_id{} ? from : m.refused;
  const bool others = m.trying && duty_.mine(m.on)
                      && !duty_.place->replicas.empty()
                      && others_can_save(*duty_.place, at, m.unable);
  act(job_action::checkpoint_failed{m.checkpoint.step, at, m.why, m.trying,
                                    others});
}

void job_core::take(const peer_id& from, const checkpoint_published& m) {
  const bool exists = m.checkpoint.manifest != blob_digest{};
  if (exists)
    known_.hear(m.checkpoint, {from});
  const bool repeated = m == last_checkpoint_;
  if (exists && m.checkpoint != last_checkpoint_.checkpoint)
    act(job_action::checkpoint_known{m.checkpoint, from, m.bytes, m.unable});
  if (!exists && !repeated)
    say_failed(from, m);
  if (m.on.since >= last_checkpoint_.on.since
      && !newer_told(m.on, m.checkpoint.step)) {
    last_checkpoint_ = m;
    published_by_ = from;
  }
  if (exists && keeps_checkpoints(m.unable)) {
    if (duty_.mine(m.on) && known_.newest() == m.checkpoint)
      say_kept();
    else if (!repeated && known_.newest() < m.checkpoint)
      act(job_action::keep_checkpoint{m.checkpoint, from});
  } else if (exists && duty_.mine(m.on) && refusing_.contains(config_.self)) {
    // The peer that is to keep it instead may not have heard.
    tell(duty_.sealers, have_checkpoint{duty_.on, m.checkpoint, true});
  }
  if (!duty_.mine(m.on) || m.trying)
    return;
  checkpoint_told(m.checkpoint.step);
  finish_if_told();
}

/// The result of a checkpoint is known. The end of the run now waits for a
/// second store.
void job_core::checkpoint_told(std::uint64_t step) {
  if (step + 1 <= checkpoint_told_)
    return;
  checkpoint_told_ = step + 1;
  done_since_ = now_;
}

/// Whether a later checkpoint was reported under this assignment.
bool job_core::newer_told(const job_header& on, std::uint64_t step) const {
  return last_checkpoint_.on == on && last_checkpoint_.checkpoint.step > step;
}

// Kept.

bool job_core::keeps_checkpoints(const std::vector<peer_id>& unable) const {
  if (!duty_.place)
    return false;
  std::vector<peer_id> out(unable);
  out.insert(out.end(), refusing_.begin(), refusing_.end());
  return std::ranges::binary_search(checkpoint_keepers(*duty_.place, out),
                                    config_.self);
}

/// @pre duty_.place
std::vector<peer_id> job_core::keepers_of_last() const {
  std::vector<peer_id> out =
    last_checkpoint_.on == duty_.on ? last_checkpoint_.unable : unable_;
  out.insert(out.end(), refusing_.begin(), refusing_.end());
  return checkpoint_keepers(*duty_.place, out);
}

/// A new keeper gets what the earlier ones had: their disks may fail next.
void job_core::keep_newest() {
  const resume_decision& d = *decision_;
  if (d.checkpoint_holders.empty() || known_.newest() >= d.checkpoint
      || !keeps_checkpoints(d.unable))
    return;
  act(job_action::keep_checkpoint{d.checkpoint, d.checkpoint_holders.front()});
}

/// Whether the last checkpoint has reached a second store, or cannot.
bool job_core::kept(std::uint64_t step) const {
  const bool failed = last_checkpoint_.on == duty_.on
                      && last_checkpoint_.checkpoint.manifest == blob_digest{};
  const peer_id& maker =
    last_checkpoint_.on == duty_.on ? published_by_ : publisher_;
  const bool nobody = std::ranges::all_of(
    keepers_of_last(), [&](const peer_id& p) { return p == maker; });
  return failed || nobody || kept_ > step
         || now_ - done_since_ >= keep_wait_max;
}

void job_core::take(const peer_id& from, const have_checkpoint& m) {
  if (!duty_.mine(m.on) || from == published_by_
      || !std::ranges::binary_search(duty_.sealers, from))
    return;
  if (m.refused) {
    if (!refusing_.insert(from).second)
      return;
    const checkpoint_ref& last = last_checkpoint_.checkpoint;
    if (duty_.mine(last_checkpoint_.on) && last.manifest != blob_digest{}
        && published_by_ != config_.self && known_.newest() < last
        && keeps_checkpoints(last_checkpoint_.unable))
      act(job_action::keep_checkpoint{last, published_by_});
  } else {
    refusing_.erase(from);
    known_.hear(m.checkpoint, {from});
    kept_ = std::max(kept_, m.checkpoint.step + 1);
  }
  finish_if_told();
}

/// To the peers that wait for it at the end.
void job_core::say_kept() {
  if (published_by_ == config_.self)
    return;
  refusing_.erase(config_.self);
  tell(duty_.participants, have_checkpoint{duty_.on, known_.newest(), false});
  kept_ = std::max(kept_, known_.newest().step + 1);
  finish_if_told();
}

void job_core::on(const job_event::keep_refused& e) {
  if (!duty_.place || e.checkpoint != last_checkpoint_.checkpoint
      || !duty_.mine(last_checkpoint_.on))
    return;
  refusing_.insert(config_.self);
  tell(duty_.sealers, have_checkpoint{duty_.on, e.checkpoint, true});
  finish_if_told();
}

// Held.

void job_core::on(const job_event::checkpoint_held& e) {
  if (known_.is_given_up(e.checkpoint))
    return;
  known_.hold(e.checkpoint, config_.self);
  // With this one, waiting for another may be needless.
  if (awaits_checkpoint() && e.checkpoint.step > decision_->otherwise
      && e.checkpoint.manifest != awaited_.manifest)
    act(job_action::begin_anew{duty_.on.since});
  if (known_.newest() == e.checkpoint && duty_.place
      && duty_.mine(last_checkpoint_.on)
      && known_.newest() == last_checkpoint_.checkpoint)
    say_kept();
}

void job_core::on(const job_event::checkpoint_dropped& e) {
  known_.drop(e.checkpoint);
}

// Given up.

void job_core::give_up(const checkpoint_ref& c) {
  if (known_.give_up(c))
    act(job_action::checkpoint_given_up{c});
}

} // namespace shoal::core
