// runtime/core/training/job/job_arrivals.cpp -- units that move while steps run:
// each input goes to its end of the way, and what has come to the hold.
#include "runtime/core/training/job/job_core.hpp"

namespace shoal::core {

/// Units that the seals show to be in step go on from there.
void job_core::begin_arrivals() {
  const resume_decision& d = *decision_;
  incoming_.begin(duty_, now_);
  for (const auto& [unit, at] : d.in_step) {
    if (duty_.holds.source(unit).peer == config_.self)
      outgoing_.go_on(duty_, unit, d.version, at, out_);
    if (at == config_.self)
      incoming_.go_on(duty_, unit, d.version, held_, out_);
  }
  incoming_.move(duty_, held_, out_);
  note_arrived();
}

job_core::arrival_count job_core::arrivals() const noexcept {
  return {incoming_.here(), incoming_.all()};
}

/// Our own units count as those of other receivers do.
void job_core::note_arrived() {
  if (incoming_.complete() == 0 || !duty_.participates())
    return;
  hold_.take(duty_, config_.self, incoming_.complete() - 1);
  ask_if_arrived();
}

void job_core::ask_if_arrived() {
  if (phase_ == phase::holding)
    hold_.ask_if_arrived(duty_, current_ - 1, out_);
}

void job_core::take(const peer_id& from, const arrival_begun& m) {
  incoming_.take(duty_, from, m, held_, out_);
}

void job_core::on(const job_event::arrival_copied& e) {
  incoming_.take(duty_, e, held_, out_);
  note_arrived();
}

void job_core::on(const job_event::arrival_reduced& e) {
  incoming_.take(duty_, e, held_, out_);
}

void job_core::on(const job_event::arrival_applied& e) {
  incoming_.take(duty_, e, held_, out_);
  note_arrived();
}

/// A step has been committed.
void job_core::note_step(const step_record& r) {
  incoming_.note(duty_, r, held_, out_);
  note_arrived();
}

/// The part of arriving units in the step in progress counts as prepared here.
void job_core::halt_arrivals() {
  const bool none = prepared_.step == 0;
  incoming_.halted(held_, prepared_, prepared_units_);
  if (!none || prepared_.step == 0)
    return;
  own_vote_ = {};
  own_vote_.header = incoming_.under();
  own_vote_.step = prepared_.step;
}

void job_core::repeat_arrivals() {
  if (phase_ == phase::holding && hold_.take_end(now_))
    start_step();
  incoming_.repeat(duty_, held_, now_, out_);
}

void job_core::take(const peer_id& from, const arrival_wanted& m) {
  if (phase_ != phase::halting)
    outgoing_.take(duty_, from, m, reports_.records(), out_);
}

void job_core::take(const peer_id& from, const arrival_complete& m) {
  if (!duty_.mine(m.header) || !duty_.participates())
    return;
  hold_.take(duty_, from, m.step);
  ask_if_arrived();
}

} // namespace shoal::core
