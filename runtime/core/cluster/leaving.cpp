// runtime/core/cluster/leaving.cpp -- giving up work, then the seat.
//
// departure.hpp decides when; former_shoals.hpp what the others must learn
// first.
#include "runtime/core/cluster/membership_impl.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace shoal::core::cluster {

using impl = membership::impl;

void impl::on(const cluster::leave&) {
  departure_.begin(now_);
}

void impl::on(const leave_now&) {
  departure_.begin_at_once(now_);
}

void impl::refresh_leaving() {
  if (!departure_.has_begun() || departure_.lingers())
    return;
  if (departure_.take_handing_on(here()))
    hand_on(true);
  const bool needed = !seated_ && former_.others_depend_on_us(view_);
  carry_out(departure_.next(here(), needed));
}

/// Out of the view: stays until enough of the others know that view.
void impl::linger() {
  if (!departure_.lingers())
    return;
  std::vector<peer_id> know;
  std::vector<peer_id> ask;
  for (const member& m : view_.members)
    if (const contact* c = contacts_.find(m.id.peer)) {
      const bool knows = c->shoal == view_.shoal && c->number >= view_.number;
      (knows ? know : ask).push_back(m.id.peer);
    }
  const bool in_touch = !know.empty() || !ask.empty();
  carry_out(departure_.linger(is_quorum(view_, know), in_touch, now_));
  if (phase_ == phase::gone || now_ < retry_at_ || ask.empty())
    return;
  retry_at_ = now_ + retry_interval;
  hand_on(true);
  out_->push_back(send{std::move(ask), decided{view_}});
  out_->push_back(
    send{contacts_.peers(), heartbeat{view_.shoal, view_.number, 0}});
}

void impl::carry_out(departure_step step) {
  change c;
  switch (step) {
  case departure_step::stay:
    return;
  case departure_step::wish_no_work:
  case departure_step::wish_no_seat:
    c.kind = step == departure_step::wish_no_seat ? change_kind::remove
                                                  : change_kind::leave;
    c.subject = here().entry()->id;
    if (!settled(c, view_))
      wish(std::move(c));
    return;
  case departure_step::go_and_forget:
    return go(true, true);
  case departure_step::go_and_keep:
    return go(true, false);
  case departure_step::go_unheard:
    return go(false, false);
  }
}

/// @param all else only views of shoals that we were in, not those passed to us
void impl::hand_on(bool all) {
  std::vector<peer_id> to = reachable();
  std::erase(to, config_.self.id.peer);
  if (to.empty())
    return;
  for (const view* last : former_.known_to_us_alone(view_, all))
    out_->push_back(send{to, decided{*last}});
}

/// Leaving or not: this peer may die for good.
void impl::hand_on_if_due() {
  if (now_ < former_.due() || phase_ != phase::member)
    return;
  former_.told();
  hand_on(false);
}

/// The last view of a shoal, sent by a member of ours.
void impl::keep_former(const view& v) {
  if (!seated_ || former_.dissolved(v.shoal) != nullptr)
    return;
  former_.remember(v);
  if (!config_.embedded)
    out_->push_back(persist{record()});
}

/// Of the shoal that goes on without us only the jobs that have ended are kept,
/// as a shoal of our own: if all its peers stop, and we are the first to start
/// again, their models can still be fetched.
void impl::forget_shoal() {
  out_->push_back(erase_history{});
  std::vector<job_entry> ended;
  std::ranges::copy_if(
    view_.jobs, std::back_inserter(ended),
    [](const job_entry& j) { return j.state != job_state::running; });
  if (ended.empty())
    return;
  view own = alone(std::move(ended), {}, {});
  own.lapsed.clear(); // they are no members of ours that may come back
  out_->push_back(persist{view_record{std::move(own), true, {}}});
}

void impl::go(bool clean, bool erase) {
  if (erase && !config_.embedded)
    forget_shoal();
  out_->push_back(left{clean});
  phase_ = phase::gone;
}

} // namespace shoal::core::cluster
