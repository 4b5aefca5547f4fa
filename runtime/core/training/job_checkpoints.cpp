// runtime/core/training/job_checkpoints.cpp -- when a job's checkpoints begin:
// what checkpoint_pace hears of votes and seals.
#include "runtime/core/training/job_core.hpp"

#include <algorithm>

namespace shoal::core {

/// One that is in too few stores is made again.
void job_core::resume_pace(const resume_decision& d) {
  unable_.clear(); // until a vote says so again
  const bool saved = d.checkpoint.manifest != blob_digest{};
  pace_.resume(saved ? d.checkpoint.step : config_.origin_step,
               d.checkpoint_lag);
  checkpoint_again_ = saved && d.checkpoint.step == d.version.step
                      && !d.checkpointed && config_.checkpoint_every > 0;
}

bool job_core::publishing() const {
  return place_ && place_->checkpointer.peer == config_.self
         && pace_.under_way(current_);
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
  if (slow_said_ || !pace_.slow(current_))
    return;
  slow_said_ = true;
  act(job_action::checkpoints_slow{current_, pace_.agreed_lag()});
}

} // namespace shoal::core
