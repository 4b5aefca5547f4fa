// actors/job/job_remarks.cpp -- a job's log: committed steps, and notices. These are
// also sent to the members of the view that cannot derive them.
//
// Errors: a notice that a lost link drops is not repeated; a wait is.
// Limits: remark_bytes_max each. The log drops a notice that it already has for
//         the same step.
#include "actors/job/job_actor.hpp"
#include "runtime/core/planning/plan_reasons.hpp"
#include "runtime/jobs/job_log.hpp"

#include <cmath>
#include <cstdio>
#include <utility>

namespace shoal::actors {

namespace {

/// Ticks between two repetitions of a wait: a member that joins, or that missed
/// the message, gets it at most this much later. Higher: fewer messages.
constexpr unsigned repeat_wait_ticks = 50;

} // namespace

void job_actor::log_remark(const core::remark& r) {
  runtime::job_event e;
  e.kind = runtime::job_event_kind::notice;
  e.step = r.step;
  e.epoch = view_ ? view_->number : 0;
  e.text = r.text;
  e.waits = r.waits;
  e.digest = r.wanted;
  e.unix_ms = unix_ms();
  log(e);
}

void job_actor::tell_members(const core::remark& r) {
  for (const core::peer_id& peer : members())
    if (peer != node().self())
      node().send(peer, r);
}

void job_actor::note(std::uint64_t step, const std::string& text) {
  const core::remark r = remark_of(step, text);
  log_remark(r);
  node().say("[job] " + text);
  if (reports())
    tell_members(r);
}

void job_actor::note_own(std::uint64_t step, const std::string& text) {
  const core::remark r = remark_of(step, text);
  log_remark(r);
  node().say("[job] " + text);
  tell_members(r);
}

void job_actor::note_wait(std::uint64_t step, const std::string& why,
                          const core::blob_digest& wanted) {
  wait_ = remark_of(step, why);
  wait_->wanted = wanted;
  wait_->waits = true;
  log_remark(*wait_);
  node().say("[job] " + why);
  if (reports())
    tell_members(*wait_);
}

void job_actor::repeat_wait() {
  if (wait_ && ticks_ % repeat_wait_ticks == 0 && reports())
    tell_members(*wait_);
}

void job_actor::note_once(const std::string& text) {
  if (!noted_.insert(text).second)
    return;
  log_remark(remark_of(core_.step_in_progress(), text));
  node().say("[job] " + text);
}

core::remark
job_actor::remark_of(std::uint64_t step, const std::string& text) const {
  core::remark r{header_, step, text, {}, false};
  r.on.job = config_.entry.id;
  r.on.island = config_.island;
  return r;
}

bool job_actor::reports() const {
  return place_ && place_->reporter.peer == config_.node->self();
}

/// Every member that logs the step derives this by itself.
void job_actor::log_if_bad(const core::step_record& r) {
  if (r.bad == 0)
    return;
  const char* what = std::isfinite(r.loss) ? "gradient norm" : "loss";
  char text[240];
  std::snprintf(text, sizeof text,
                "step %llu is not applied: its %s is not finite (bad step %u "
                "in a row; the run fails at %lld, training.max_bad_steps)",
                static_cast<unsigned long long>(r.version.step), what, r.bad,
                static_cast<long long>(run().max_bad_steps));
  log_remark(remark_of(r.version.step, text));
}

bool job_actor::is_to_end() const {
  const core::job_entry* entry =
    view_ ? core::find_job(*view_, config_.entry.id) : nullptr;
  return entry != nullptr && core::is_draining(*entry);
}

/// Every member derives this and what follows from the view.
void job_actor::say_that_it_ends() {
  if (config_.island == 0 && !std::exchange(end_said_, true))
    log_remark(remark_of(core_.step_in_progress(),
                         "the job ends after the step under way, as a user has "
                         "asked"));
}

void job_actor::say_if_slow(const core::island_place& place) {
  const auto slow = core::slow_network_of(*view_, config_.entry.id, place);
  std::string text = slow ? core::to_text(*view_, *slow) : "";
  if (!text.empty() && text != slow_said_)
    log_remark(remark_of(core_.step_in_progress(), text));
  slow_said_ = std::move(text);
}

void job_actor::log(runtime::job_event e) {
  e.island = config_.island;
  node().log().add(config_.entry.id, e);
}

void job_actor::log_step(const core::step_record& r) {
  runtime::job_event e;
  e.kind = runtime::job_event_kind::step;
  e.step = last_step_ = r.version.step;
  e.epoch = r.version.made;
  e.loss = r.loss;
  e.grad_norm = r.grad_norm;
  e.data = r.data;
  e.lr = runtime::learning_rate(run(), std::int64_t(e.step));
  e.tokens = e.step * world_->tokens_per_step();
  e.tokens_per_s = took_.whole > 0 ? double(world_->tokens_per_step()) * 1e9
                                       / double(took_.whole)
                                   : 0;
  e.computing_s = double(took_.computing) / 1e9;
  e.reducing_s = double(took_.reducing) / 1e9;
  e.peers = r.replicas * r.stages;
  if (place_ && place_->since == r.version.made) { // some peers run several
                                                   // stages
    std::set<core::peer_id> at_work;
    for (const core::replica_place& replica : place_->replicas)
      for (const core::stage_place& s : replica.stages)
        at_work.insert(s.where.peer);
    e.peers = std::uint32_t(at_work.size());
  }
  e.bubble = double(bubble_permille_) / 10;
  e.unix_ms = unix_ms();
  log(e);
}

} // namespace shoal::actors
