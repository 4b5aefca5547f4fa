// runtime/core/cluster/local/departure.cpp -- giving up work, then the seat.
#include "runtime/core/cluster/local/departure.hpp"

#include "runtime/core/random.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core::cluster {

void departure::begin(nanoseconds now) {
  begun_ = true;
  in_touch_at_ = now;
}

void departure::begin_at_once(nanoseconds now) {
  if (!at_once_)
    leave_until_ = now + leave_patience_;
  begun_ = at_once_ = true;
  in_touch_at_ = now;
}

/// Whether for long there was no peer that could agree to our leaving.
bool departure::is_out_of_touch(bool in_touch, nanoseconds now) {
  if (in_touch)
    in_touch_at_ = now;
  return now >= in_touch_at_ + alone_patience_;
}

bool departure::take_handing_on(const situation& s) {
  return s.phase == phase::member && !std::exchange(handed_on_, true);
}

departure_step departure::next(const situation& s, bool others_depend_on_us) {
  if (!s.seated) // no shoal counts on us, unless a late one does
    return handed_on_ || !others_depend_on_us ? departure_step::go_and_forget
                                              : departure_step::go_and_keep;
  if (s.current.members.size() == 1) // the shoal pauses with its only member
    return at_once_ ? departure_step::go_and_keep : departure_step::stay;
  if (is_out_of_touch(s.phase == phase::member, s.now)
      || (at_once_ && s.now >= leave_until_))
    return departure_step::go_unheard;
  if (s.entry() == nullptr)
    return departure_step::stay;
  return at_once_ ? departure_step::wish_no_seat : departure_step::wish_no_work;
}

departure_step
departure::linger(bool quorum_knows, bool in_touch, nanoseconds now) {
  if (quorum_knows)
    return departure_step::go_and_forget;
  if (is_out_of_touch(in_touch, now) || now >= leave_until_)
    return departure_step::go_unheard;
  return departure_step::stay;
}

nanoseconds departure::deadline(nanoseconds now) const {
  nanoseconds due = time_max;
  if (at_once_ && leave_until_ > now)
    due = leave_until_;
  if (begun_ && in_touch_at_ + alone_patience_ > now)
    due = std::min(due, in_touch_at_ + alone_patience_);
  return due;
}

} // namespace shoal::core::cluster
