// runtime/core/cluster/contact.cpp -- connections, and messages on them.
#include "runtime/core/cluster/membership_impl.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core::cluster {

using impl = membership::impl;

situation impl::here() const {
  return {config_.self, view_, contacts_, phase_, seated_, now_};
}

void impl::connect_to(const dialer::addresses& all) {
  for (const std::string& address : all)
    out_->push_back(connect{address});
}

hello impl::make_hello() const {
  hello h = describe(view_);
  h.cluster = config_.cluster;
  h.joinable = phase_ == phase::member && here().has_current_entry()
               && here().has_vote() && !config_.embedded
               && !departure_.has_begun();
  h.name = config_.self.name;
  h.version = config_.version;
  h.addresses = config_.self.addresses;
  key_exchange_.keys().describe(h);
  h.superseded = former_.superseded(view_);
  return h;
}

void impl::say_hellos() {
  std::vector<peer_id> to = contacts_.take_to_greet(view_, now_);
  if (!to.empty())
    out_->push_back(send{std::move(to), make_hello()});
}

void impl::on(const discovered& e) {
  connect_to(dialer_.discovered(e.address, e.listed, here(), random_));
}

void impl::on(const reached& e) {
  if (contacts_.contains(e.peer))
    dialer_.reached(e.address, e.peer, contacts_);
}

void impl::on(const turned_away& e) {
  const support has = supported_by();
  if (!dialer_.turned_away(e.address, has))
    return;
  std::string line =
    e.address + " says that this peer was revoked: it is not dialled again";
  if (has == support::none)
    line += ", and this peer ends unless it reaches members that let it in";
  else if (has == support::contact)
    line += ", and this peer ends once no other peer is in contact, unless "
            "members let it in before";
  say(line);
}

/// A member in contact with its quorum asks no peer, even if it is that quorum.
support impl::supported_by() const {
  if (phase_ == phase::member && here().has_current_entry())
    return support::quorum;
  return contacts_.empty() ? support::none : support::contact;
}

void impl::end_if_shut_out() {
  if (auto accuser = dialer_.shut_out_by(supported_by(), now_)) {
    out_->push_back(shut_out{std::move(*accuser)});
    phase_ = phase::gone;
  }
}

/// A connected peer has shown which view it is in: the one with the older view
/// gets the newer one.
void impl::heard(const peer_id& from, const shoal_id& shoal, epoch number) {
  contacts_.hear_of_view(from, shoal, number);
  if (shoal == view_.shoal) {
    if (number < view_.number)
      send_to(from, decided{view_});
    else if (number > view_.number)
      send_to(from, view_request{view_.shoal, view_.number});
  } else {
    tell_former(from, shoal, number);
  }
}

/// Tells a late member, if we know it, that its shoal has dissolved or has
/// removed us.
bool impl::tell_former(const peer_id& to, const shoal_id& shoal, epoch number) {
  const view* last = former_.newer(shoal, number);
  if (last != nullptr)
    send_to(to, decided{*last});
  return last != nullptr;
}

void impl::on(const peer_id& from, const hello& m) {
  contacts_.hear(from, m, now_);
  dialer_.forget_failures(m.addresses); // this peer has answered
  heard(from, m.shoal, m.number);
}

void impl::on(const peer_id& from, const heartbeat& m) {
  send_to(from, heartbeat_ack{view_.shoal, view_.number, m.sequence});
  heard(from, m.shoal, m.number);
}

void impl::on(const peer_id& from, const heartbeat_ack& m) {
  heard(from, m.shoal, m.number);
  if (m.shoal == view_.shoal)
    detector_.on_ack(from, m.sequence, now_, *out_);
}

void impl::on(const peer_id& from, const gossip& m) {
  heard(from, m.shoal, m.number);
  if (m.shoal == view_.shoal && m.number == view_.number
      && find_member(view_, from) != nullptr)
    detector_.on_alerts(from, m.alerts);
}

/// Whether `from` may know that view, and the view is possible. There is no
/// proof that a quorum agreed: peers crash, they do not lie. A peer that waits
/// for others of its shoal believes any peer that the shoal has ended: all its
/// members may be gone.
bool impl::believable(const peer_id& from, const view& v) const {
  bool knows =
    find_member(v, from) != nullptr
    || (find_member(view_, from) != nullptr
        && (v.shoal == view_.shoal || v.dissolved_into))
    || (v.shoal == view_.shoal && v.dissolved_into && phase_ == phase::waiting);
  return knows && v.cluster == config_.cluster
         && std::ranges::any_of(v.members, votes);
}

void impl::on(const peer_id& from, const decided& m) {
  if (!believable(from, m.value))
    return;
  contacts_.hear_of_decision(from, m.value);
  if (m.value.shoal != view_.shoal && m.value.dissolved_into)
    keep_former(m.value);
  else
    adopt(m.value);
}

void impl::on(const peer_id& from, const view_request& m) {
  if (m.shoal == view_.shoal && m.number < view_.number)
    send_to(from, decided{view_});
  else
    tell_former(from, m.shoal, m.number);
}

/// Passes on a message of the agreement if it is about our view's successor;
/// otherwise one of the two peers is behind.
template <class Message>
void impl::vote(const peer_id& from, const Message& m) {
  if (m.shoal != view_.shoal) {
    tell_former(from, m.shoal, m.base);
  } else if (m.base < view_.number) {
    send_to(from, decided{view_});
  } else if (m.base > view_.number) {
    send_to(from, view_request{view_.shoal, view_.number});
  } else if (!may_be_a_copy()) {
    agreement_.on(from, m, now_, *out_);
  }
}

void impl::on(const peer_id& from, const prepare& m) {
  vote(from, m);
}
void impl::on(const peer_id& from, const promise& m) {
  vote(from, m);
}
void impl::on(const peer_id& from, const accept& m) {
  vote(from, m);
}
void impl::on(const peer_id& from, const accepted& m) {
  vote(from, m);
}
void impl::on(const peer_id& from, const refused& m) {
  vote(from, m);
}

void impl::on(const peer_id& from, const key_offer& m) {
  key_exchange_.on(from, m, here(), *out_);
}
void impl::on(const peer_id& from, const key_held& m) {
  key_exchange_.on(from, m, here());
}
void impl::on(const peer_id& from, const key_request& m) {
  key_exchange_.on(from, m, here(), *out_);
}

} // namespace shoal::core::cluster
