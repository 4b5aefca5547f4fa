// runtime/core/training/job/job_core.cpp -- a step as a transaction, and recovery
// when the assignment changes. Messages are in job_messages.cpp.
#include "runtime/core/training/job/job_core.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/planning/arrivals.hpp"
#include "runtime/core/planning/detours.hpp"
#include "runtime/core/planning/plan.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shoal::core {

job_core::job_core(job_config config)
  : config_(config), digests_(config.digest_every), incoming_(config.copies),
    outgoing_(config.copies), rounds_(config.checkpoint_every, config.blocks),
    reports_(config.last, config.top), evaluated_(config.evaluated) {
  SHOAL_ASSERT(config_.microbatches > 0);
  duty_.self = config_.self;
}

job_actions job_core::step(const job_input& event, nanoseconds now) {
  now_ = now;
  out_.clear();
  std::visit([this](const auto& e) { on(e); }, event);
  return std::move(out_);
}

bool job_core::last_step(std::uint64_t step) const noexcept {
  return step >= config_.total_steps
         || (stop_step_ > 0 && step + 1 >= stop_step_);
}

bool job_core::eval_due(std::uint64_t step) const noexcept {
  return config_.eval_every > 0
         && (step % config_.eval_every == 0 || step == config_.origin_step
             || step == config_.total_steps);
}

bool job_core::checkpoint_due(std::uint64_t step) const noexcept {
  if (last_step(step))
    return config_.checkpoint_at_end;
  if (bad_run_ > 0) // there is nothing new to save, and older ones would be
                    // dropped
    return false;
  return step != config_.origin_step && rounds_.due(step);
}

// ---- Another assignment ----------------------------------------------------

void job_core::on(const job_event::view_changed& e) {
  if (phase_ == phase::over)
    return;
  const std::vector<peer_id> before = std::exchange(members_, e.members);
  former_ = e.former;
  if (e.place && duty_.place
      && duty_.header.digest == digest(config_.id, *e.place)) {
    next_.reset();
    ask_newcomers(before);
    restorable_if_ready();
    return;
  }
  if (may_finish(e))
    next_ = e;
  else
    take_up(e);
}

void job_core::take_up(const job_event::view_changed& e) {
  next_.reset();
  if (!e.place) {
    bool told = !duty_.place && phase_ == phase::halting;
    duty_ = duty_under({}, config_.id, config_.self);
    if (!told)
      begin_halt();
    return;
  }
  duty_ = duty_under(e.place, config_.id, config_.self);
  digests_.begin(duty_);
  SHOAL_ASSERT(!duty_.participates() || duty_.seals());
  begin_halt();
  for (const auto& [from, early] : seals_.take_early(duty_))
    take(from, early);
}

void job_core::begin_halt() {
  seals_.halt();
  votes_.halt();
  decision_.reset();
  restorable_.clear();
  fetched_ = news_ = false;
  unheard_.clear();
  missing_rounds_ = 0;
  copies_.halt();
  late_.reset();
  committed_here_ = false;
  finished_ = false;
  asked_for_blobs_ = false;
  rounds_.halt();
  incoming_.halt();
  outgoing_.halt();
  hold_.halt();
  phase_ = phase::halting;
  act(job_action::halt{duty_.header.digest});
}

void job_core::on(const job_event::halted& e) {
  if (phase_ != phase::halting || e.digest != duty_.header.digest)
    return;
  SHOAL_ASSERT(!applying_); // a running apply completes before halted
  held_.break_off();
  running_ = {};
  copies_.halted();
  halt_arrivals();
  if (!duty_.place || !duty_.seals()) {
    duty_.units.clear();
    prepared_ = {};
    release_spare();
    copies_.drop_all(out_);
    phase_ = duty_.place ? phase::idle : phase::over;
    if (!duty_.place) {
      reports_.report_all(out_);
      act(job_action::ended{});
    }
    return;
  }
  if (duty_.place->replicas.empty()) { // waits for members; keeps all state
    phase_ = phase::standby;
    act(job_action::waiting{duty_.place->why_waiting});
    return;
  }
  unable_here_ = e.unable;
  make_seal();
}

void job_core::make_seal() {
  SHOAL_ASSERT(!seals_.find(config_.self)); // J-2
  seal s;
  s.header = duty_.header;
  s.units = held_.sealed(prepared_.step > 0 ? prepared_units_
                                            : std::vector<std::uint32_t>{});
  for (auto& [version, units] : copies_.all())
    for (std::uint32_t unit : units)
      s.copies.push_back({unit, version});
  s.prepared = prepared_;
  if (prepared_.step > 0)
    s.prepared_vote = own_vote_;
  s.last = reports_.last();
  s.given_up = known_.given_up();
  for (const auto& [c, at] : known_.heard())
    s.heard.push_back(c);
  // A published checkpoint was committed, even if we missed those steps, or no
  // peer has it any more.
  for (const auto* published : {&s.heard, &s.given_up})
    for (const checkpoint_ref& c : *published)
      if (c.step > s.last.version.step && c.since >= s.last.version.made)
        s.known = std::max(s.known, state_version{c.step, c.since});
  s.top = reports_.top();
  s.stop_step = stop_step_;
  s.evaluated = evaluated_;
  for (const auto& [c, lacks] : known_.held())
    s.stored.push_back({c, lacks.runs()});
  s.unable = unable_here_;
  s.has_blobs = has_blobs_;
  s.checkpoint_lag = rounds_.agreed_lag();
  phase_ = phase::sealing;
  repeated_ = now_;
  tell(duty_.sealers, s);
  seals_.take(config_.self, s);
  current_ = 0;
  resume_if_sealed();
}

void job_core::resume_if_sealed() {
  if (phase_ != phase::sealing || !seals_.complete(duty_))
    return;
  decision_ = decide_resume(*duty_.place, config_.blocks, config_.origin_step,
                            config_.checkpoint_every, seals_.all());
  for (const checkpoint_ref& c : decision_->given_up)
    give_up(c);
  for (const checkpoint_ref& c : decision_->heard)
    known_.hear(c, {});
  ask_for_blobs();
  const bool back = decision_->from != resume_decision::source::live
                    || decision_->version.step < decision_->last;
  if (decision_->from == resume_decision::source::checkpoint
      || (back && config_.islands > 1))
    begin_fetch();
  else
    take_effect();
}

/// From here on, what was held before is void.
void job_core::take_effect() {
  const resume_decision& d = *decision_;
  phase_ = phase::restoring;
  awaited_ = {};
  bad_run_ = d.known ? d.record.bad : 0;
  evaluated_ = std::min(evaluated_, d.version.step + 1);
  act(job_action::adopt{duty_.header.digest, *duty_.place, d.version,
                        duty_.units});
  reports_.resume(duty_, d, config_.checkpoint_every, out_);
  if (!d.differing.empty())
    act(job_action::state_differs{d.differing});
  copies_.resume(duty_, d, seals_.all(), out_);
  if (d.stop)
    stop_step_ = d.version.step + 1;
  reports_.tell_again(duty_, seals_.all(), members_, out_);
  if (d.known)
    reports_.publish(duty_, d.record, {}, now_, out_);
  rounds_.keep_newest(duty_, d, known_, out_);
  // Gradients of arrivals come without votes. Without a record of the step its
  // norm is unknown, so the state is fetched (reachable() counts no others).
  const bool behind = d.known && prepared_.step > 0 && prepared_ == d.version;
  if (!behind) {
    prepared_ = {};
    load_units();
    return;
  }
  applying_ = prepared_;
  applying_units_ = prepared_units_;
  act(
    job_action::apply{prepared_.step, applied_norm(d.record), applying_units_});
}

void job_core::load_units() {
  const resume_decision& d = *decision_;
  held_.begin_loads(duty_.header.digest);
  if (d.from == resume_decision::source::live) {
    for (const auto& t : d.transfers) {
      if (t.from == config_.self) {
        const bool now = held_.is_at(t.unit, d.version);
        SHOAL_ASSERT(now || copies_.has(d.version, t.unit));
        job_action::serve_unit serve{duty_.header.digest, t.unit,
                                     d.version.step, t.to, std::nullopt};
        if (!now)
          serve.copy = d.version;
        act(serve);
      }
      if (t.to == config_.self) {
        held_.load(t.unit, d.version);
        act(job_action::fetch_unit{duty_.header.digest, t.unit, d.version.step,
                                   t.from});
      }
    }
    for (std::uint32_t unit : duty_.units) {
      if (held_.loads(unit) || held_.is_at(unit, d.version))
        continue;
      SHOAL_ASSERT(copies_.has(d.version, unit));
      held_.load(unit, d.version);
      act(job_action::revert_unit{duty_.header.digest, unit, d.version});
    }
  } else {
    for (std::uint32_t unit : duty_.units) {
      held_.load(unit, d.version);
      if (d.from == resume_decision::source::origin)
        act(job_action::initialise_unit{duty_.header.digest, unit});
      else
        act(job_action::restore_unit{duty_.header.digest, unit, d.checkpoint,
                                     d.checkpoint_holders});
    }
  }
  continue_if_loaded();
}

void job_core::on(const job_event::loaded& e) {
  if (held_.loaded(e.digest, e.unit))
    continue_if_loaded();
}

void job_core::continue_if_loaded() {
  if (phase_ != phase::restoring || applying_ || held_.loading() > 0)
    return;
  begin_arrivals();
  if (!duty_.participates()) {
    phase_ = phase::standby;
    return;
  }
  const resume_decision& d = *decision_;
  // A checkpoint that is in too few stores is made again.
  checkpoint_again_ = rounds_.resume(d, config_.origin_step);
  enter(d.version, d.evaluated, d.checkpointed);
}

// ---- From step to step -----------------------------------------------------

void job_core::enter(const state_version& at, bool evaluated,
                     bool checkpointed) {
  const std::uint64_t step = at.step;
  current_ = step + 1;
  for (std::uint32_t unit : duty_.units)
    SHOAL_ASSERT(held_.at(unit).step == step); // J-6
  eval_settled_ = evaluated || !eval_due(step);
  checkpoint_settled_ =
    checkpointed
    || !(std::exchange(checkpoint_again_, false) || checkpoint_due(step));
  if (evaluated)
    evaluated_ = std::max(evaluated_, step + 1);
  if (checkpointed)
    rounds_.saved(step);
  if (!last_step(step))
    copies_.take_if_due(duty_, at, committed_here_, out_);
  settle();
}

bool job_core::gate_open() const {
  auto has = [this](const member_id& m) { return blobs_at_.contains(m.peer); };
  if (!has(duty_.place->data_source))
    return false;
  return current_ != config_.origin_step + 1
         || std::ranges::all_of(duty_.place->keepers, has);
}

void job_core::say_what_data_is_missing() {
  const bool lost = std::ranges::none_of(
    members_, [this](const peer_id& p) { return blobs_at_.contains(p); });
  act(job_action::waiting{
    lost ? "no peer that is here has the job's data: a command that follows "
           "the job and has the data gives it again; otherwise a peer that "
           "had it must come back"
         : "the job's data is being copied to the peers that need it",
    lost});
}

/// Does what remains at the state current_ - 1, then starts current_.
void job_core::settle() {
  std::uint64_t step = current_ - 1;
  const bool ends = last_step(step) || diverged();
  const bool needs_text = !eval_settled_ || !ends;
  if (needs_text && !gate_open()) {
    if (phase_ != phase::gated)
      say_what_data_is_missing();
    phase_ = phase::gated;
  } else if (!eval_settled_) {
    phase_ = phase::evaluating;
    act(job_action::run_eval{duty_.header.digest, step});
  } else if (!checkpoint_settled_) {
    phase_ = phase::checkpointing;
    rounds_.begin(duty_, step, last_step(step), out_);
  } else if (ends) {
    phase_ = phase::done;
    rounds_.wait_for_store(now_);
    finish_if_told();
  } else if (hold_.due(duty_, step, now_)) {
    phase_ = phase::holding;
    hold_.begin(now_);
    hold_.ask_if_arrived(duty_, step, out_);
  } else {
    start_step();
  }
}

void job_core::on(const job_event::evaluated& e) {
  if (phase_ != phase::evaluating || e.digest != duty_.header.digest
      || e.step + 1 != current_)
    return;
  if (duty_.place->evaluator.peer == config_.self) {
    eval_result r{duty_.header, held_.at(duty_.units.front()), e.loss,
                  e.known ? e.tokens : 0};
    evaluated_ = std::max(evaluated_, e.step + 1);
    log_eval(r);
    tell(members_, r);
  }
  eval_settled_ = true;
  settle();
}

void job_core::on(const job_event::snapshot_taken& e) {
  if (phase_ != phase::checkpointing || e.digest != duty_.header.digest
      || e.step + 1 != current_)
    return;
  checkpoint_settled_ = true;
  settle();
}

/// All peers reach the end together: the peer that ends the job must not stop a
/// checkpoint that is still being written, or fetched by its only other keeper.
void job_core::finish_if_told() {
  std::uint64_t step = current_ - 1;
  if (phase_ != phase::done || finished_
      || (eval_due(step) && evaluated_ < current_)
      || (checkpoint_due(step)
          && (!rounds_.told(step) || !rounds_.kept(duty_, step, now_))))
    return;
  finished_ = true;
  reports_.report_all(out_);
  act(job_action::finished{step,
                           diverged() ? stop_reason::diverged
                           : step >= config_.total_steps
                             ? stop_reason::completed
                             : stop_reason::drained,
                           duty_.header.since});
}

void job_core::start_step() {
  SHOAL_ASSERT(prepared_.step == 0 && !applying_);
  votes_.begin(current_);
  outgoing_.serve(duty_, held_, out_);
  phase_ = phase::running;
  running_ = duty_.header;
  running_units_ = duty_.units;
  copies_.step_begins(duty_);
  step_began_ = now_;
  act(job_action::run_step{duty_.header.digest, current_,
                           digests_.due(duty_, current_ - 1)});
}

void job_core::on(const job_event::prepared& e) {
  bool running = phase_ == phase::running;
  // Work prepared before the halt is a fact that the seal may state.
  if ((!running && phase_ != phase::halting) || running_.digest == 0
      || e.digest != running_.digest || e.step != current_
      || prepared_.step > 0)
    return;
  if (copies_.late(current_)) {
    if (running)
      late_ = e;
    return;
  }
  prepared_ = {current_, running_.since};
  prepared_units_ = running_units_;
  own_vote_ = {running_,
               current_,
               e.units,
               e.losses,
               drain_,
               false,
               e.busy,
               e.elapsed,
               copies_.complete_here(),
               e.samples,
               e.writing || rounds_.publishing(duty_, current_),
               e.unable,
               rounds_.lag(),
               e.digests,
               bad_run_};
  held_.hashed(e.digests);
  if (!running)
    return;
  phase_ = phase::voting;
  repeated_ = now_;
  tell(duty_.participants, own_vote_);
  votes_.put(config_.self, own_vote_);
  commit_if_voted();
}

void job_core::on(const job_event::copied& e) {
  if (copies_.take(e) && late_ && !copies_.late(current_))
    on(*std::exchange(late_, std::nullopt));
}

void job_core::commit_if_voted() {
  if (phase_ != phase::voting || !votes_.complete(duty_, current_))
    return;
  const auto& votes = votes_.of(current_);
  std::vector<const vote*> all;
  bool drained = false;
  for (auto& [peer, v] : votes) {
    all.push_back(&v);
    drained = drained || v.drain;
  }
  std::optional<step_record> r =
    tally(all, config_.blocks, config_.microbatches);
  if (!r) {
    act(job_action::waiting{"the votes of step " + std::to_string(current_)
                            + " lack a unit or the losses"});
    return;
  }
  r->version = prepared_;
  r->replicas = replica_count(duty_.place->replicas);
  r->stages =
    static_cast<std::uint32_t>(duty_.place->replicas.front().stages.size());
  if (drained)
    stop_step_ = current_ + 1;
  copies_.note(all, current_, out_);
  rounds_.note(duty_, votes, current_, bad_run_ == 0, out_);
  phase_ = phase::applying;
  applying_ = prepared_;
  applying_units_ = prepared_units_;
  bad_run_ = r->bad;
  act(job_action::apply{current_, applied_norm(*r), applying_units_});
  progress measured;
  measured.bubble_permille = bubble_permille(all);
  step_took_ = now_ - step_began_;
  reports_.publish(duty_, *r, measured, now_, out_);
  note_step(*r);
  // NaNs have many bit patterns. All have these votes, so all ask for the same.
  if (r->bad == 0 && digests_differ(all))
    act(job_action::begin_anew{duty_.header.since});
  if (next_)
    take_up(job_event::view_changed(*next_));
}

void job_core::on(const job_event::applied& e) {
  if (!applying_ || applying_->step != e.step)
    return;
  for (std::uint32_t unit : applying_units_) {
    SHOAL_ASSERT(held_.at(unit).step + 1 == e.step); // J-4
    held_.set(unit, *applying_);
  }
  applying_.reset();
  prepared_ = {};
  running_ = {};
  if (phase_ == phase::restoring) {
    load_units();
  } else if (phase_ == phase::applying) {
    committed_here_ = true;
    release_spare();
    enter({e.step, duty_.header.since}, false, false);
  }
}

void job_core::release_spare() {
  part_set needed = duty_.holds.of(config_.self).arrives;
  for (const std::uint32_t u : duty_.units)
    needed.add(u);
  std::vector<std::uint32_t> spare = held_.take_spare(needed);
  if (!spare.empty())
    act(job_action::release{std::move(spare)});
}

} // namespace shoal::core
