// actors/job/parts/job_remarks.cpp -- writes a job's log, and sends notices.
#include "actors/job/parts/job_remarks.hpp"

#include "kernels/peaks.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/planning/plan_reasons.hpp"
#include "runtime/core/view_changes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace shoal::actors {

namespace {

/// Ticks between two repetitions of a wait: a member that joins, or that missed
/// the message, gets it at most this much later. Higher: fewer messages.
constexpr unsigned repeat_wait_ticks = 50;

/// Limit of verdicts and other notices under one sub-plan: texts of others take
/// room.
constexpr std::size_t noted_max = 64;

/// Beyond this many names only those of present members are kept.
constexpr std::size_t names_max = 4096;

} // namespace

void job_remarks::take(const core::remark& r) {
  runtime::job_event e;
  e.kind = runtime::job_event_kind::notice;
  e.step = r.step;
  e.epoch = here_.view ? here_.view->number : 0;
  e.text = r.text;
  e.waits = r.waits;
  e.digest = r.wanted;
  e.unix_ms = unix_ms();
  log(e);
}

void job_remarks::tell_members(const core::remark& r) {
  for (const core::peer_id& peer : here_.members())
    if (peer != here_.self)
      here_.owner->send_to(peer, r);
}

void job_remarks::note(std::uint64_t step, const std::string& text) {
  const core::remark r = remark_of(step, text);
  take(r);
  here_.owner->say("[job] " + text);
  if (reports())
    tell_members(r);
}

void job_remarks::note_own(std::uint64_t step, const std::string& text) {
  const core::remark r = remark_of(step, text);
  take(r);
  here_.owner->say("[job] " + text);
  tell_members(r);
}

void job_remarks::note_wait(std::uint64_t step, const std::string& why,
                            const core::blob_digest& wanted) {
  wait_ = remark_of(step, why);
  wait_->wanted = wanted;
  wait_->waits = true;
  take(*wait_);
  here_.owner->say("[job] " + why);
  if (reports())
    tell_members(*wait_);
}

void job_remarks::tick() {
  ++ticks_;
  if (wait_ && ticks_ % repeat_wait_ticks == 0 && reports())
    tell_members(*wait_);
}

void job_remarks::note_here(std::uint64_t step, const std::string& text) {
  take(remark_of(step, text));
  here_.owner->say("[job] " + text);
}

void job_remarks::note_once(const std::string& text) {
  if (noted_.insert(text).second)
    note_here(here_.core->step_in_progress(), text);
}

void job_remarks::note_verdict(const std::string& text) {
  if (noted_.size() < noted_max
      && noted_.insert(text.substr(0, text.find(':'))).second)
    note(here_.core->step_in_progress(), text);
}

core::remark
job_remarks::remark_of(std::uint64_t step, const std::string& text) const {
  core::remark r{here_.header, step, text, {}, false};
  r.header.job = here_.entry.id;
  r.header.island = here_.id.index;
  return r;
}

/// Whether this peer is the reporter of the present place.
bool job_remarks::reports() const {
  return here_.place && here_.place->reporter.peer == here_.self;
}

/// Every member that logs the step derives this by itself.
void job_remarks::log_if_bad(const core::step_record& r) {
  if (r.bad == 0)
    return;
  const char* what = std::isfinite(r.loss) ? "gradient norm" : "loss";
  char text[240];
  std::snprintf(text, sizeof text,
                "step %llu is not applied: its %s is not finite (bad step %u "
                "in a row; the run fails at %lld, training.max_bad_steps)",
                static_cast<unsigned long long>(r.version.step), what, r.bad,
                static_cast<long long>(here_.run().max_bad_steps));
  take(remark_of(r.version.step, text));
}

void job_remarks::say_that_it_ends() {
  if (here_.id.index == 0 && !std::exchange(end_said_, true))
    take(remark_of(here_.core->step_in_progress(),
                   "the job ends after the step under way, as a user has "
                   "asked"));
}

void job_remarks::say_if_slow(const core::island_place& place) {
  const auto slow = core::slow_network_of(*here_.view, here_.entry.id, place);
  std::string text = slow ? core::to_text(*here_.view, *slow) : "";
  if (!text.empty() && text != slow_said_)
    take(remark_of(here_.core->step_in_progress(), text));
  slow_said_ = std::move(text);
}

void job_remarks::say_if_wider(const core::island_place& place) {
  if (runtime::factors_of(here_.run()) != kernels::factor_type::bf16
      || !std::ranges::count(core::holdings(place).participants(), here_.self)
      || !kernels::instruction_of(kernels::peak::bf16).empty()
      || std::exchange(wider_said_, true))
    return;
  note_own(here_.core->step_in_progress(),
           "the processor of " + name_of(here_.self)
             + " has no products of bfloat16: it computes them in float32");
}

void job_remarks::log(runtime::job_event e) {
  e.island = here_.id.index;
  here_.log->add(here_.entry.id, e);
}

void job_remarks::log_eval(const core::eval_result& r) {
  if (r.tokens == 0)
    return; // no text is held out
  runtime::job_event e;
  e.kind = runtime::job_event_kind::eval;
  e.step = r.version.step;
  e.epoch = r.version.made;
  e.loss = r.loss;
  e.tokens = r.tokens;
  e.unix_ms = unix_ms();
  log(e);
}

void job_remarks::log_step(const core::step_record& r, std::uint32_t bubble) {
  runtime::job_event e;
  e.kind = runtime::job_event_kind::step;
  e.step = last_step_ = r.version.step;
  e.epoch = r.version.made;
  e.loss = r.loss;
  e.grad_norm = r.grad_norm;
  e.data = r.data;
  e.bad_steps = r.bad;
  e.lr = runtime::learning_rate(here_.run(), std::int64_t(e.step));
  e.tokens = e.step * here_.world->tokens_per_step();
  e.tokens_per_s = here_.took.whole > 0 ? double(here_.world->tokens_per_step())
                                            * 1e9 / double(here_.took.whole)
                                        : 0;
  e.computing_s = double(here_.took.computing) / 1e9;
  e.reducing_s = double(here_.took.reducing) / 1e9;
  e.peers = r.replicas * r.stages;
  if (here_.place
      && here_.place->since == r.version.made) { // some peers run several
                                                 // stages
    std::set<core::peer_id> at_work;
    for (const core::replica_place& replica : here_.place->replicas)
      for (const core::stage_place& s : replica.stages)
        at_work.insert(s.lead().peer);
    e.peers = std::uint32_t(at_work.size());
  }
  e.bubble = double(bubble) / 10;
  e.unix_ms = unix_ms();
  log(e);
  log_if_bad(r);
}

void job_remarks::log_checkpoint(const core::checkpoint_ref& c) {
  runtime::job_event e;
  e.kind = runtime::job_event_kind::checkpoint;
  e.step = c.step;
  e.epoch = c.since;
  e.digest = c.manifest;
  e.unix_ms = unix_ms();
  log(e);
}

void job_remarks::log_view(const core::view* before,
                           const core::assignment& job,
                           const core::island_place& place) {
  if (place.since == logged_since_)
    return;
  logged_since_ = place.since;
  runtime::job_event e;
  e.kind = runtime::job_event_kind::view;
  e.epoch = here_.view->number;
  e.peers = std::uint32_t(here_.view->members.size());
  e.text = core::to_text(*here_.view, job);
  if (before)
    e.cause = core::changes_text(*before, *here_.view, here_.entry.id);
  e.unix_ms = unix_ms();
  log(e);
  const runtime::run_config& run = here_.run();
  const std::string rare = core::rare_copies_text(
    here_.entry, place,
    run.checkpoint_enable ? std::uint64_t(run.checkpoint_interval) : 0);
  if (!rare.empty())
    note_once(rare);
}

void job_remarks::learn_names() {
  if (names_.size() > names_max)
    names_.clear();
  for (const core::member& member : here_.view->members)
    names_[member.id.peer] = member.name;
}

std::string job_remarks::name_of(const core::peer_id& peer) const {
  const auto at = names_.find(peer);
  return at == names_.end() ? core::short_name(peer) : at->second;
}

} // namespace shoal::actors
