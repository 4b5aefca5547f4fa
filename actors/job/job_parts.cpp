// actors/job/job_parts.cpp -- actions for the parts of a job actor, and their
// events.
#include "actors/job/job_actor.hpp"

namespace shoal::actors {

using namespace core::job_action;
namespace event = core::job_event;

// The text, and evaluations.

void job_actor::text_loaded(const job_text::text_ptr& text) {
  actors_.add_data_source(text);
}

void job_actor::text_damaged() {
  fetch({needed_blobs(), members(), true, {}, [this] { text_.fetched(); }});
}

void job_actor::text_found() {
  if (have_all(node(), job_blobs()))
    feed(event::blobs_held{});
}

void job_actor::act(const run_eval& a) {
  text_.load();
  actors_.begin_eval(a.step);
  evaluation_.begin(a.step, actors_.in_first_replica(), actors_.is_evaluator());
}

void job_actor::act(const eval_known& a) {
  remarks_.log_eval(a.result);
}

void job_actor::evaluated(std::uint64_t step,
                          const std::optional<eval_summed>& sum) {
  event::evaluated done;
  done.digest = digest();
  done.step = step;
  done.known = sum && sum->tokens > 0;
  if (done.known) {
    done.loss = sum->loss;
    done.tokens = sum->tokens;
  }
  feed(done);
}

// Units that come and go while steps run.

void job_actor::act(const receive_unit& a) {
  moves_.receive(a);
}

void job_actor::act(const apply_arrived& a) {
  moves_.apply(a);
}

void job_actor::act(const send_unit& a) {
  actors_.pass(send_gradients{a.unit, a.to});
  moves_.send(a);
}

void job_actor::act(const arrivals_complete& a) {
  node().propose_arrived(id(), a.since);
}

/// Copies and digests of the state that are in progress delay the vote.
void job_actor::state_read() {
  --reading_state_;
  prepare_if_complete();
}

// Checkpoints.

void job_actor::act(const run_checkpoint& a) {
  actors_.begin_checkpoint(a);
  saving_.begin(a);
}

void job_actor::act(const begin_anew& a) {
  hand_over(a.since);
}

void job_actor::act(const checkpoint_known& a) {
  saving_.known(a);
}

void job_actor::act(const checkpoint_failed& a) {
  saving_.failed(a);
}

void job_actor::act(const checkpoints_slow& a) {
  saving_.slow(a);
}

void job_actor::act(const keep_checkpoint& a) {
  saving_.keep(a);
}

void job_actor::act(const checkpoint_given_up& a) {
  saving_.give_up(a);
}

void job_actor::found(std::vector<core::job_input> first) {
  inputs_.insert(inputs_.begin(), first.begin(), first.end());
  feed(event::tick{});
}

void job_actor::hand_over(core::epoch since) {
  node().propose_retry(id(), since);
}

void job_actor::report_refusing_disks() {
  std::vector<core::peer_id> now;
  if (!over_)
    now = core_.refusing_disks();
  if (now == refusing_reported_)
    return;
  refusing_reported_ = std::move(now);
  node().disks_refuse(id(), refusing_reported_);
}

} // namespace shoal::actors
