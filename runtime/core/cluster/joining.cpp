// runtime/core/cluster/joining.cpp -- being admitted, and admitting others.
#include "runtime/core/cluster/local/view_size.hpp"
#include "runtime/core/cluster/membership_impl.hpp"

#include <algorithm>

namespace shoal::core::cluster {

using impl = membership::impl;

join_request impl::make_request(const shoal_id& into) const {
  join_request r;
  r.shoal = into;
  r.draft = config_.self;
  r.draft.id.incarnation = 0;
  r.draft.state = member_state::active;
  r.draft.voter = config_.self.voter && !config_.embedded;
  r.seated = seated_;
  r.floor = view_.number;
  return r;
}

/// Repeats its request until a view has our entry. If only our records are
/// lost, it asks all members; if we have no shoal, one member of the best shoal
/// in contact.
void impl::ask_for_entry() {
  if (seated_ && here().has_current_entry())
    return;
  if (departure_.is_at_once() || now_ < retry_at_)
    return;
  if (seated_) {
    std::vector<peer_id> to = reachable();
    std::erase(to, config_.self.id.peer);
    if (!to.empty()) {
      out_->push_back(send{std::move(to), make_request(view_.shoal)});
      retry_at_ = now_ + retry_interval;
    }
    return;
  }
  const auto [sponsor, contact] = rivals().best(attempts_);
  nanoseconds waited = now_ - homeless_since_;
  if (waited >= config_.homeless_patience && !dialer_.is_shut_out()
      && (contact == nullptr || waited >= 3 * config_.homeless_patience)) {
    say("nobody admits this peer; founding a new shoal");
    found_alone();
    return;
  }
  if (contact == nullptr)
    return;
  ++attempts_;
  retry_at_ = now_ + retry_interval;
  send_to(sponsor, make_request(contact->said->shoal));
}

void impl::on(const peer_id& from, const join_request& m) {
  if (m.draft.id.peer != from
      || m.draft.instance != contacts_.find(from)->instance)
    return;
  join_answer no;
  no.shoal = m.shoal;
  if (const view* last = former_.dissolved(m.shoal)) {
    no.into = last->dissolved_into;
    no.addresses = last->dissolved_addresses;
    send_to(from, std::move(no));
    return;
  }
  if (m.shoal != view_.shoal || !here().has_vote())
    return; // its next attempt asks another member
  const member* old = find_member(view_, from);
  if (old != nullptr && old->instance == m.draft.instance) {
    send_to(from, decided{view_});
    return;
  }
  if (is_revoked(view_, from))
    no.reason = "this peer was revoked";
  else if (config_.embedded)
    no.reason = "an embedded peer admits nobody";
  else if (old == nullptr && view_.members.size() >= members_max)
    no.reason =
      "the shoal is full: " + std::to_string(members_max) + " members";
  else if (old == nullptr && !has_room(view_, bytes_bound(m.draft)))
    no.reason = no_room;
  else if (old == nullptr && stalled_.stays_out(from, now_)) {
    no.later = true;
    no.reason =
      "this peer was expelled for holding up a job; it is let in "
      "again "
      + std::to_string(stalled_.pause_of(view_, from) / (1000 * milliseconds))
      + " s after that";
  }
  if (!no.reason.empty()) {
    send_to(from, std::move(no));
    return;
  }
  auto [at, fresh] = wishes_.joins.try_emplace(from);
  join_wish& j = at->second;
  if (fresh || j.request.draft.instance != m.draft.instance)
    j.since = now_;
  j.request = m;
  j.until = now_ + wish_life;
}

void impl::on(const peer_id&, const join_answer& m) {
  if (seated_)
    return;
  connect_to(dialer_.dial_once(m.addresses, here()));
  if (m.later)
    homeless_since_ = now_; // some shoal will admit us: we found none
  if (!m.reason.empty() && m.reason != refusal_) { // reported once, not at
                                                   // every retry
    refusal_ = m.reason;
    out_->push_back(rejected{m.reason});
  }
}

void impl::on(const peer_id& from, const change_request& m) {
  if (m.shoal != view_.shoal || find_member(view_, from) == nullptr
      || !here().has_vote() || settled(m.what, view_))
    return;
  // The change is about a view that we do not know yet: the sender asks again.
  // A number that no view has would settle every later wish.
  if (m.what.since > view_.number)
    return;
  for (auto& w : wishes_.changes)
    if (w.what == m.what) {
      if (!w.own)
        w.until = now_ + wish_life;
      return;
    }
  if (wishes_.changes.size() < wishes_max)
    wishes_.changes.push_back({m.what, false, now_, now_ + wish_life});
}

} // namespace shoal::core::cluster
