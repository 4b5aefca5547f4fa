// runtime/core/cluster/local/departure.hpp -- giving up work, then the seat.
//
// Before a leaver goes, a quorum of the last view that it helped to decide must
// know that view. Otherwise, with two members, the other one could wait for
// ever for a vote that no longer exists. So a leaver that is out of the view
// lingers until enough of the others know it.
#pragma once

#include "runtime/core/cluster/local/situation.hpp"

namespace shoal::core::cluster {

enum class departure_step {
  stay,
  wish_no_work,  ///< wish for a view in which we are leaving
  wish_no_seat,  ///< wish for a view without us
  go_and_forget, ///< the others know; our history is of no more use
  go_and_keep,   ///< clean, but a late member may need our history
  go_unheard,    ///< no peer could agree to our leaving
};

class departure {
public:
  /// @param leave_patience the longest wait once other peers hold the state
  /// @param alone_patience the longest wait while no quorum is in contact
  departure(nanoseconds leave_patience, nanoseconds alone_patience)
    : leave_patience_(leave_patience), alone_patience_(alone_patience) {}

  void begin(nanoseconds now);
  /// Other peers hold the state: the seat may go, too.
  void begin_at_once(nanoseconds now);
  bool has_begun() const { return begun_; }
  bool is_at_once() const { return at_once_; }
  bool lingers() const { return lingers_; }

  /// A new view. @param seat_was_given_up we have just lost it in that view
  void follow(bool seat_was_given_up) {
    lingers_ = at_once_ && seat_was_given_up;
  }
  /// Whether to hand on now, once, what the others would otherwise have to ask
  /// us for.
  bool take_handing_on(const situation& s);

  /// What to do now. @pre has_begun() and not lingers()
  /// @param others_depend_on_us a late member may need what only we know
  departure_step next(const situation& s, bool others_depend_on_us);
  /// The next step while this peer lingers. @param quorum_knows a quorum knows
  /// the view without us. @param in_touch with any member of that view
  departure_step linger(bool quorum_knows, bool in_touch, nanoseconds now);

  /// When next() or linger() has something to do.
  nanoseconds deadline(nanoseconds now) const;

private:
  bool is_out_of_touch(bool in_touch, nanoseconds now);

  nanoseconds leave_patience_;
  nanoseconds alone_patience_;
  bool begun_ = false;
  bool at_once_ = false;
  bool handed_on_ = false;
  bool lingers_ = false; ///< out of the view, and telling the others
  nanoseconds leave_until_ = 0;
  nanoseconds in_touch_at_ = 0; ///< when other peers were last in contact
};

} // namespace shoal::core::cluster
