// actors/job/job_evaluation.cpp -- starts, sums and logs evaluations of a job.
#include "actors/job/job_actor.hpp"
#include "runtime/jobs/job_log.hpp"

namespace shoal::actors {

using namespace core::job_action;
namespace event = core::job_event;

void job_actor::act(const run_eval& a) {
  evaluating_ = a.step;
  eval_sum_.reset();
  eval_parts_ = actors_.is_evaluator() ? 1 : 0;
  eval_parts_ += actors_.in_first_replica() ? 1 : 0;
  ++eval_parts_; // this call
  load_text();
  actors_.begin_eval(a.step);
  on_eval_part();
}

void job_actor::on_eval_part() {
  if (--eval_parts_ > 0 || digest_ == 0)
    return;
  event::evaluated done;
  done.digest = digest_;
  done.step = evaluating_;
  done.known = eval_sum_ && eval_sum_->tokens > 0;
  if (done.known) {
    done.loss = eval_sum_->loss;
    done.tokens = eval_sum_->tokens;
  }
  feed(done);
}

void job_actor::act(const eval_known& a) {
  if (a.result.tokens == 0)
    return; // no text is held out
  runtime::job_event e;
  e.kind = runtime::job_event_kind::eval;
  e.step = a.result.version.step;
  e.epoch = a.result.version.made;
  e.loss = a.result.loss;
  e.tokens = a.result.tokens;
  e.unix_ms = unix_ms();
  log(e);
}

} // namespace shoal::actors
