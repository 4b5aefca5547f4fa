// runtime/core/cluster/leaving.cpp -- giving up work, then the seat.
//
// The last view that a leaver helps to decide must be known to a quorum of
// that view before it goes: of two members the other could otherwise wait for
// ever for a vote that no longer exists. Likewise for shoals that have
// dissolved while a member was away: if nobody but us can tell it, others are
// told too.
#include "runtime/core/cluster/membership_impl.hpp"

#include <algorithm>
#include <utility>

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
  if (phase_ == phase::member && !std::exchange(handed_on_, true))
    hand_on(true);
  if (!seated_) { // no shoal counts on us, unless a late one does
    auto we_know = [this](const view& v) { return only_we_know(v); };
    go(true, handed_on_ || std::ranges::none_of(former_, we_know));
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
    hand_on(true);
    out_->push_back(send{std::move(ask), decided{view_}});
    std::vector<peer_id> all;
    for (const auto& [id, l] : links_)
      all.push_back(id);
    out_->push_back(
      send{std::move(all), heartbeat{view_.shoal, view_.number, 0}});
  }
}

/// Whether somebody may come back and wait for that shoal, since it has missed
/// its end, whom too few members of ours could tell.
bool impl::only_we_know(const view& former) const {
  if (!former.dissolved_into)
    return false; // it goes on without us: whoever asks is told
  const peer_id& self = config_.self.id.peer;
  const bool same = former.shoal == view_.shoal; // we have no other yet
  auto here = [&](const peer_id& id) {
    return id == self || (!same && find_member(view_, id) != nullptr);
  };
  std::size_t know = 0;
  bool late = !std::ranges::all_of(former.lapsed, here);
  for (const member& m : former.members) {
    late = late || !here(m.id.peer);
    know += m.id.peer != self && here(m.id.peer);
  }
  return late && know < former_known_min;
}

/// @param all else only of shoals that we were in: not what we were handed
void impl::hand_on(bool all) {
  std::vector<peer_id> to = reachable();
  std::erase(to, config_.self.id.peer);
  if (to.empty())
    return;
  for (const view& v : former_)
    if (only_we_know(v)
        && (all || find_member(v, config_.self.id.peer) != nullptr))
      out_->push_back(send{to, decided{v}});
}

/// We may also die for good.
void impl::hand_on_if_due() {
  if (now_ < hand_on_at_ || phase_ != phase::member)
    return;
  hand_on_at_ = time_max;
  hand_on(false);
}

/// The last view of a shoal, from a member of ours.
void impl::keep_former(const view& v) {
  if (!seated_ || std::ranges::any_of(former_, [&](const view& known) {
        return known.shoal == v.shoal && known.dissolved_into;
      }))
    return;
  remember_former(v);
  if (!config_.embedded)
    out_->push_back(persist{view_record{view_, seated_, former_}});
}

void impl::go(bool clean, bool erase) {
  if (erase && !config_.embedded)
    out_->push_back(erase_history{});
  out_->push_back(left{clean});
  phase_ = phase::gone;
}

} // namespace shoal::core::cluster
