// runtime/core/cluster/force.cpp -- a shoal that replaces one without a quorum,
// and what peers of the old shoal do when they return.
//
// With `recover --force` a person says that the quorum is gone for good. If it
// is not, two shoals run the same jobs. So views of the new shoal name the old
// one, and peers of the old one go over: each by itself while it waits for its
// quorum; all together, by a view that dissolves their shoal, if they are a
// quorum. A quorum that was not wholly gone has outlived the force, also if all
// its processes have been started again since (view::outages): it keeps its
// jobs, reports that there are two shoals, and goes over once it has no jobs.
//
// force_skip keeps the versions apart that both shoals have made of one job.
// One thing is not kept apart: a checkpoint of the other run at a later step
// counts as the newest.
#include "runtime/core/cluster/membership_impl.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core::cluster {

using impl = membership::impl;

void impl::on(const recover_force&) {
  if (phase_ != phase::waiting) {
    out_->push_back(
      rejected{"this peer does not wait for a quorum; nothing to recover"});
    return;
  }
  if (now_ < doubted_until_) {
    out_->push_back(rejected{"another process has this peer's identity"});
    return;
  }
  say("a new shoal by force, without the quorum of epoch "
      + std::to_string(view_.number));
  std::vector<assignment> previous;
  if (config_.plan_jobs != nullptr)
    previous = config_.plan_jobs(view_);
  std::vector<superseded_shoal> superseded = former_.superseded(view_);
  superseded.push_back({view_.shoal, view_.number});
  if (superseded.size() > superseded_max)
    superseded.erase(superseded.begin());
  found_alone(view_.jobs, std::move(previous), std::move(superseded));
}

/// A peer that waits for a quorum has no one to agree with: it gives up its own
/// seat.
void impl::follow_superseding() {
  if (phase_ != phase::waiting || departure_.has_begun()
      || now_ < doubted_until_)
    return;
  const contact* c = rivals().superseding();
  if (c == nullptr)
    return;
  say("the shoal of this peer has lost its quorum, and `recover --force` has "
      "made another in its place ("
      + c->said->name + "): asking to join that one");
  install(view(view_), false);
}

/// Wishes for jobs of the shoal that we have just given up: those that have
/// ended there and of which the other shoal knows nothing, or an end that counts
/// less (done before cancelled or failed, then the higher step): their models
/// can still be fetched. What our shoal has taken off its list goes off this
/// one's, too. If that shoal replaces ours by force, also those that
/// ran: the peer that was forced had missed them.
void impl::bring_jobs(const view& before) {
  const bool replaced =
    std::ranges::find(view_.superseded, before.shoal, &superseded_shoal::shoal)
    != view_.superseded.end();
  std::vector<change> wanted;
  for (const std::vector<job_entry>* jobs :
       {&before.jobs, &std::as_const(given_up_)})
    for (const job_entry& j : *jobs)
      if (j.state != job_state::running || replaced) {
        wanted.emplace_back().kind = change_kind::submit_job;
        wanted.back().job = j;
      }
  // A view that dissolves has taken all jobs off its list.
  for (const job_id id :
       before.dissolved_into ? given_up_removed_ : before.removed) {
    wanted.emplace_back().kind = change_kind::remove_job;
    wanted.back().id = id;
  }
  given_up_.clear();
  given_up_removed_.clear();
  for (change& c : wanted)
    if (!settled(c, view_))
      wish(std::move(c));
}

rival_shoals impl::rivals() const {
  return {here(), key_exchange_.keys(), former_, config_.cluster,
          config_.embedded};
}

/// Wishes to dissolve our shoal into one in contact that goes on, if there is
/// one.
void impl::choose_merge() {
  const situation s = here();
  const contact* other = nullptr;
  if (phase_ == phase::member && s.has_vote() && s.has_current_entry()
      && !departure_.has_begun()
      && (!config_.embedded || !config_.seeds.empty())) {
    other = rivals().superseding();
    if (other == nullptr)
      other = rivals().best(attempts_).second;
  }
  const verdict v =
    other == nullptr ? verdict::goes_on : rivals().judge(*other);
  if (v == verdict::stays_apart)
    say_apart(*other);
  if (v != verdict::dissolves) {
    wishes_.merge.reset();
    return;
  }
  nanoseconds since = now_;
  if (wishes_.merge && wishes_.merge->into == other->said->shoal)
    since = wishes_.merge->since;
  wishes_.merge = merge_wish{other->said->shoal, other->said->addresses, since,
                             rivals().may_give_up_jobs(*other)};
}

void impl::say_apart(const contact& other) {
  if (warned_apart_)
    return;
  std::string reason = rivals().why_apart(other);
  warned_apart_ = !reason.empty();
  if (warned_apart_)
    say(std::move(reason));
}

} // namespace shoal::core::cluster
