// runtime/core/training/job/job_checkpoints.cpp -- what happens to checkpoints:
// what the rounds conclude from it, and whether the run may end now.
#include "runtime/core/training/job/job_core.hpp"

namespace shoal::core {

/// For the last checkpoint no vote can say that other peers are to make it.
bool job_core::should_hand_over() const {
  return phase_ == phase::done && duty_.participates() && !finished_
         && checkpoint_due(current_ - 1)
         && rounds_.hands_over(duty_, current_ - 1);
}

void job_core::on(const job_event::checkpointed& e) {
  if (!decision_ || e.digest != duty_.header.digest || e.step >= current_
      || !duty_.participates()
      || !rounds_.take(duty_, e, current_, members_, known_, now_, out_))
    return;
  on(job_event::snapshot_taken{e.digest, e.step}); // there is a result
  finish_if_told();
}

void job_core::take(const peer_id& from, const checkpoint_published& m) {
  if (rounds_.take(duty_, from, m, known_, now_, out_))
    finish_if_told();
}

void job_core::take(const peer_id& from, const have_checkpoint& m) {
  if (duty_.mine(m.header) && rounds_.take(duty_, from, m, known_, out_))
    finish_if_told();
}

void job_core::on(const job_event::keep_refused& e) {
  if (rounds_.take(duty_, e, out_))
    finish_if_told();
}

void job_core::on(const job_event::checkpoint_held& e) {
  if (known_.is_given_up(e.checkpoint))
    return;
  known_.hold(e.checkpoint, config_.self, e.lacks);
  // With this one, waiting for another may be needless.
  if (awaits_checkpoint() && e.lacks.empty()
      && e.checkpoint.step > decision_->otherwise
      && e.checkpoint.manifest != awaited_.manifest)
    act(job_action::begin_anew{duty_.header.since});
  if (rounds_.held(duty_, e.checkpoint, known_, out_))
    finish_if_told();
}

void job_core::on(const job_event::checkpoint_heard& e) {
  known_.hear(e.checkpoint, {});
}

void job_core::on(const job_event::checkpoint_dropped& e) {
  known_.drop(e.checkpoint);
}

void job_core::give_up(const checkpoint_ref& c) {
  if (known_.give_up(c))
    act(job_action::checkpoint_given_up{c});
}

} // namespace shoal::core
