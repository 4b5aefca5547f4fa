// runtime/core/training/job/job_messages.cpp -- the messages of a job: the effect
// of each, and what is sent again when it may have been lost.
#include "runtime/core/assert.hpp"
#include "runtime/core/training/job/job_core.hpp"

#include <algorithm>

namespace shoal::core {

void job_core::on(const job_event::received& e) {
  if (phase_ == phase::over || header(e.message).id() != config_.id)
    return;
  std::visit([&](const auto& m) { take(e.from, m); }, e.message);
}

void job_core::take(const peer_id& from, const seal& m) {
  if (!duty_.mine(m.header)) {
    if (m.header.since > duty_.header.since) {
      seals_.keep(from, m);
      take_up_if_halted(from);
    }
    return;
  }
  if (from == config_.self)
    return;
  if (!duty_.seals()) { // asked what we have heard
    seal heard;
    heard.header = duty_.header;
    for (const auto& [c, at] : known_.heard())
      heard.heard.push_back(c);
    if (m.again)
      act(job_action::send{from, heard});
    return;
  }
  if (!std::ranges::binary_search(duty_.sealers, from))
    return take_answer(from, m);
  if (m.has_blobs)
    blobs_at_[from] = true;
  else // a job's text is removed at its end: of a shoal that joined this one, say
    blobs_at_.erase(from);
  seals_.take(from, m);
  const seal* own = seals_.find(config_.self);
  if (m.again && own)
    act(job_action::send{from, *own});
  resume_if_sealed();
}

void job_core::take(const peer_id& from, const vote& m) {
  if (!duty_.mine(m.header) || from == config_.self
      || !std::ranges::binary_search(duty_.participants, from)
      || !duty_.participates())
    return;
  votes_.take(from, m, decision_ ? current_ : 0);
  const vote* own = votes_.find(m.step, config_.self);
  if (m.again && own)
    act(job_action::send{from, *own});
  commit_if_voted();
}

void job_core::take(const peer_id& from, const have_blobs&) {
  // A fact about the sender's store, whatever its assignment.
  if (blobs_at_.size() >= blobs_told_max && !blobs_at_.contains(from))
    return;
  blobs_at_[from] = true;
  ask_for_blobs();
  if (phase_ == phase::gated)
    settle();
}

void job_core::take(const peer_id& from, const records_wanted& m) {
  reports_.answer(duty_, from, m, out_);
}

void job_core::take(const peer_id&, const progress& m) {
  reports_.publish(duty_, m.record, m, now_, out_);
  note_step(m.record);
  if (duty_.mine(m.header) && m.record.version.made == duty_.header.since
      && phase_ == phase::standby)
    release_spare(); // J-5: the assignment has committed a step
}

void job_core::take(const peer_id&, const eval_result& m) {
  log_eval(m);
  if (!duty_.mine(m.header))
    return;
  evaluated_ = std::max(evaluated_, m.version.step + 1);
  finish_if_told();
}

void job_core::log_eval(const eval_result& r) {
  if (!reports_.keep(r))
    return;
  if (age(r.version) > age(last_eval_.version))
    last_eval_ = r;
  if (r.tokens > 0)
    act(job_action::eval_known{r});
}

void job_core::tell(const std::vector<peer_id>& whom, const job_message& m) {
  send_to(whom, config_.self, m, out_);
}

void job_core::on(const job_event::drain& e) {
  drain_ = e.wanted;
}

void job_core::on(const job_event::blobs_held&) {
  has_blobs_ = true;
  blobs_at_[config_.self] = true;
  if (!duty_.place)
    return;
  tell(duty_.sealers, have_blobs{duty_.header});
  if (phase_ == phase::gated)
    settle();
}

bool job_core::keeper() const {
  return duty_.place
         && std::ranges::any_of(duty_.place->keepers, [&](const auto& m) {
              return m.peer == config_.self;
            });
}

/// Keepers and the data source need the blobs; any peer that has them will do.
void job_core::ask_for_blobs() {
  if (!decision_ || has_blobs_ || asked_for_blobs_)
    return;
  if (!keeper() && duty_.place->data_source.peer != config_.self)
    return;
  std::vector<peer_id> holders;
  for (auto& [peer, has] : blobs_at_)
    if (std::ranges::find(members_, peer) != members_.end())
      holders.push_back(peer);
  if (holders.empty())
    return;
  asked_for_blobs_ = true;
  act(job_action::get_blobs{std::move(holders)});
}

void job_core::on(const job_event::tick&) {
  if (!duty_.place)
    return;
  take_up_if_late();
  reports_.repeat(duty_, now_, out_);
  repeat_arrivals();
  if (now_ - repeated_ < repeat_after)
    return;
  repeated_ = now_;
  repeat();
}

bool job_core::should_move() const {
  switch (phase_) {
  case phase::halting:
  case phase::sealing:
  case phase::evaluating:
  case phase::running:
  case phase::voting:
  case phase::applying:
    return true;
  case phase::restoring:
    return decision_->from == resume_decision::source::live;
  case phase::checkpointing:
    return !last_step(current_ - 1); // the last waits for the one before
  default:
    return false;
  }
}

bool job_core::loads() const {
  if (phase_ == phase::gated)
    return std::ranges::any_of(
      members_, [this](const peer_id& p) { return blobs_at_.contains(p); });
  if (phase_ == phase::fetching) // nobody here can hurry an absent peer
    return duty_.participates() && !absent_;
  return phase_ == phase::restoring
         && decision_->from != resume_decision::source::live;
}

std::uint64_t job_core::mark() const {
  std::uint64_t h = duty_.header.digest;
  for (const std::uint64_t part :
       {std::uint64_t(phase_), current_, std::uint64_t(seals_.all().size()),
        std::uint64_t(votes_.of(current_).size()),
        std::uint64_t(restorable_.size()), std::uint64_t(held_.loading()),
        std::uint64_t(copies_.missing()), std::uint64_t(applying_.has_value()),
        rounds_.newest_kept(), rounds_.newest_told(), evaluated_})
    h = (h ^ part) * 0x100000001b3; // FNV-1a, by words
  return h;
}

void job_core::repeat() {
  auto missing = [](const auto& all, const auto& got) {
    std::vector<peer_id> out;
    std::ranges::copy_if(all, std::back_inserter(out),
                         [&](const peer_id& p) { return !got.contains(p); });
    return out;
  };
  if (phase_ == phase::sealing) {
    seal s = *seals_.find(config_.self);
    s.again = true;
    tell(missing(duty_.sealers, seals_.all()), s);
  }
  if (phase_ == phase::fetching && news_)
    act(job_action::begin_anew{duty_.header.since});
  if (phase_ == phase::fetching && !unheard_.empty()) {
    if (now_ - asked_ < hearing_max)
      ask_others();
    else
      unheard_.clear();
    restorable_if_ready();
  }
  if (phase_ == phase::fetching
      && (restorable_.contains(config_.self) || !duty_.participates()))
    tell(missing(duty_.participants, restorable_),
         restorable{duty_.header, decision_->checkpoint, true});
  if (phase_ == phase::voting) {
    vote v = own_vote_;
    v.again = true;
    tell(missing(duty_.participants, votes_.of(current_)), v);
  }
  if (has_blobs_ && !committed_here_ && phase_ != phase::halting)
    tell(duty_.sealers, have_blobs{duty_.header});
  if (phase_ == phase::done) {
    finish_if_told();
    if (last_eval_.header == duty_.header
        && duty_.place->evaluator.peer == config_.self)
      tell(members_, last_eval_);
    rounds_.repeat(duty_, members_, out_);
  }
}

const char* to_text(job_core::phase p) {
  using phase = job_core::phase;
  switch (p) {
  case phase::idle:
    return "idle";
  case phase::halting:
    return "halting";
  case phase::sealing:
    return "sealing";
  case phase::fetching:
    return "getting the checkpoint";
  case phase::restoring:
    return "restoring";
  case phase::gated:
    return "waiting for the text";
  case phase::evaluating:
    return "evaluating";
  case phase::checkpointing:
    return "checkpointing";
  case phase::running:
    return "running";
  case phase::voting:
    return "voting";
  case phase::applying:
    return "applying";
  case phase::holding:
    return "holding";
  case phase::standby:
    return "standby";
  case phase::done:
    return "done";
  case phase::over:
    return "over";
  }
  return "unknown";
}

} // namespace shoal::core
