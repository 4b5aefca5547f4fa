// runtime/core/training/job/job_restore.cpp -- fetching a checkpoint before it
// is restored, and waiting for it while its holders are away.
//
//                     sealing
//   live or origin |      | checkpoint; of several islands, also if steps are
//                  |      | lost
//                  |   fetching --- whole nowhere ---> go on asking, or give it
//                  |      | all participants              up and begin anew
//                  |      | are restorable
//                  `-> restoring: what was held is void
#include "runtime/core/training/job/job_core.hpp"

#include <algorithm>

namespace shoal::core {

void job_core::begin_fetch() {
  const resume_decision& d = *decision_;
  phase_ = phase::fetching;
  ask_others();
  if (d.from != resume_decision::source::checkpoint) {
    absent_ = false;
    fetched_ = true;
    restorable_if_ready();
    return restore_if_fetched();
  }
  if (awaited_ != d.checkpoint) {
    // One patience covers all checkpoints waited for in a row.
    if (awaited_ == checkpoint_ref{} || !known_.is_given_up(awaited_))
      awaited_since_ = now_;
    awaited_ = d.checkpoint;
    awaited_reported_ = false;
  }
  absent_ = d.checkpoint_holders.empty();
  if (absent_ && !former_.empty())
    say_awaited();
  if (duty_.participates()) // the others learn the result from participants
    act(job_action::fetch_checkpoint{duty_.header.digest, d.checkpoint,
                                     d.checkpoint_holders, duty_.units});
  restore_if_fetched();
}

void job_core::on(const job_event::checkpoint_fetched& e) {
  if (phase_ != phase::fetching || e.digest != duty_.header.digest
      || e.checkpoint != decision_->checkpoint)
    return;
  absent_ = false;
  fetched_ = true;
  restorable_if_ready();
}

void job_core::restorable_if_ready() {
  if (phase_ != phase::fetching || !duty_.participates() || !fetched_ || news_
      || !unheard_.empty() || !restorable_.insert(config_.self).second)
    return;
  tell(duty_.sealers, restorable{duty_.header, decision_->checkpoint, false});
  restore_if_fetched();
}

/// Asks the members that do not seal, or asks again, what they have heard.
void job_core::ask_others() {
  if (config_.islands <= 1 || !duty_.participates())
    return;
  if (unheard_.empty()) {
    asked_ = now_;
    for (const peer_id& p : members_)
      if (!std::ranges::binary_search(duty_.sealers, p))
        unheard_.insert(p);
  }
  seal s = *seals_.find(config_.self);
  s.again = true;
  tell({unheard_.begin(), unheard_.end()}, s);
}

/// Members have come while a checkpoint is fetched, or have gone. Those that
/// have come may be its holders, and have heard of a newer one.
void job_core::ask_newcomers(const std::vector<peer_id>& before) {
  std::erase_if(unheard_, [this](const peer_id& p) {
    return std::ranges::find(members_, p) == members_.end();
  });
  if (phase_ != phase::fetching || config_.islands <= 1 || !duty_.participates()
      || restorable_.contains(config_.self))
    return;
  seal s = *seals_.find(config_.self);
  s.again = true;
  for (const peer_id& p : members_)
    if (std::ranges::find(before, p) == before.end()
        && !std::ranges::binary_search(duty_.sealers, p)) {
      if (unheard_.empty())
        asked_ = now_;
      unheard_.insert(p);
      tell({p}, s);
    }
}

void job_core::take_answer(const peer_id& from, const seal& m) {
  if (phase_ != phase::fetching || unheard_.erase(from) == 0)
    return;
  // What a seal has named was decided upon: it is known not to be usable.
  const auto decided = [this](const checkpoint_ref& c) {
    return std::ranges::any_of(seals_.all(), [&](const auto& sealed) {
      return std::ranges::find(sealed.second.heard, c.manifest,
                               &checkpoint_ref::manifest)
             != sealed.second.heard.end();
    });
  };
  for (const checkpoint_ref& c : m.heard) {
    known_.hear(c, {});
    news_ = news_
            || (c.step > decision_->version.step && known_.heard().contains(c)
                && !decided(c));
  }
  if (news_)
    act(job_action::begin_anew{duty_.header.since});
  restorable_if_ready();
}

void job_core::take(const peer_id& from, const restorable& m) {
  if (!duty_.mine(m.header) || from == config_.self)
    return;
  if (m.again && restorable_.contains(config_.self))
    act(job_action::send{from, restorable{duty_.header, m.checkpoint, false}});
  if (!std::ranges::binary_search(duty_.participants, from))
    return;
  absent_ = false; // its holder is here
  restorable_.insert(from);
  restore_if_fetched();
}

void job_core::restore_if_fetched() {
  if (phase_ == phase::fetching
      && std::ranges::includes(restorable_, duty_.participants))
    take_effect();
}

void job_core::say_awaited() {
  if (awaited_reported_)
    return;
  awaited_reported_ = true;
  std::vector<peer_id> holders = decision_->checkpoint_holders;
  if (holders.empty())
    holders = known_.holders(awaited_, config_.self);
  act(job_action::checkpoint_awaited{awaited_, std::move(holders),
                                     decision_->top, decision_->otherwise,
                                     config_.checkpoint_patience});
}

void job_core::on(const job_event::checkpoint_missing& e) {
  const bool here =
    phase_ == phase::fetching
    || (phase_ == phase::restoring
        && decision_->from == resume_decision::source::checkpoint);
  if (!here || e.digest != duty_.header.digest
      || e.checkpoint != decision_->checkpoint
      || known_.is_given_up(e.checkpoint)
      || ++missing_rounds_ < missing_rounds_max)
    return;
  // If no former member is away, no peer can bring it.
  const bool waits =
    phase_ == phase::fetching && decision_->costly && !former_.empty();
  absent_ = waits;
  if (!waits)
    return go_on_without(e.checkpoint);
  say_awaited();
  if (now_ - awaited_since_ >= config_.checkpoint_patience)
    go_on_without(e.checkpoint);
}

void job_core::go_on_without(const checkpoint_ref& c) {
  give_up(c);
  act(job_action::begin_anew{duty_.header.since});
}

/// Peers that find it missing give it up.
void job_core::on(const job_event::stop_waiting&) {
  if (!duty_.place)
    return;
  take(config_.self, stop_waiting{duty_.header});
  tell(duty_.sealers, stop_waiting{duty_.header});
}

void job_core::take(const peer_id&, const stop_waiting& m) {
  if (!duty_.mine(m.header) || !awaits_checkpoint()
      || known_.is_given_up(awaited_))
    return;
  awaited_since_ = now_ - config_.checkpoint_patience; // for older ones, too
  go_on_without(awaited_);
}

} // namespace shoal::core
