// runtime/core/cluster/leaving.cpp -- giving up work, then the seat.
//
// The last view that a leaver helps to decide must be known to a quorum of
// that view before it goes: of two members the other could otherwise wait for
// ever for a vote that no longer exists.
#include "runtime/core/cluster/membership_impl.hpp"

#include <algorithm>

namespace shoal::core::cluster {

using impl = membership::impl;

void impl::on(const cluster::leave&) {
  leaving_ = true;
  in_touch_at_ = now_;
}

void impl::on(const leave_now&) {
  if (!leaving_now_)
    leave_until_ = now_ + config_.leave_patience;
  leaving_ = leaving_now_ = true;
  in_touch_at_ = now_;
}

/// Whether nobody has been there for long who could agree to our leaving.
bool impl::out_of_touch(bool touch) {
  if (touch)
    in_touch_at_ = now_;
  return now_ >= in_touch_at_ + config_.alone_patience;
}

void impl::refresh_leaving() {
  if (!leaving_ || lingering_)
    return;
  const member* self = entry();
  if (!seated_) { // no shoal counts on us
    go(true, true);
  } else if (view_.members.size() == 1) {
    if (leaving_now_)
      go(true, false); // the shoal sleeps with its only member
  } else if (out_of_touch(phase_ == phase::member)
             || (leaving_now_ && now_ >= leave_until_)) {
    go(false, false);
  } else if (self != nullptr) {
    change c;
    c.kind = leaving_now_ ? change_kind::remove : change_kind::leave;
    c.subject = self->id;
    if (!settled(c, view_))
      wish(std::move(c));
  }
}

/// Out of the view: stays until enough of the others know it.
void impl::linger() {
  if (!lingering_)
    return;
  std::vector<peer_id> know;
  std::vector<peer_id> ask;
  for (const member& m : view_.members) {
    auto l = links_.find(m.id.peer);
    if (l == links_.end())
      continue;
    bool knows =
      l->second.shoal == view_.shoal && l->second.number >= view_.number;
    (knows ? know : ask).push_back(m.id.peer);
  }
  if (is_quorum(view_, know)) {
    go(true, true);
  } else if (out_of_touch(!know.empty() || !ask.empty())
             || now_ >= leave_until_) {
    go(false, false);
  } else if (now_ >= retry_at_ && !ask.empty()) {
    retry_at_ = now_ + retry_interval;
    out_->push_back(send{std::move(ask), decided{view_}});
    std::vector<peer_id> all;
    for (const auto& [id, l] : links_)
      all.push_back(id);
    out_->push_back(
      send{std::move(all), heartbeat{view_.shoal, view_.number, 0}});
  }
}

void impl::go(bool clean, bool erase) {
  if (erase && !config_.embedded)
    out_->push_back(erase_history{});
  out_->push_back(left{clean});
  phase_ = phase::gone;
}

} // namespace shoal::core::cluster
