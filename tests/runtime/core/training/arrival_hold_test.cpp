// tests/runtime/core/training/arrival_hold_test.cpp -- the stop before a view
// that uses what has arrived.
#include "runtime/core/training/job/state/arrival_hold.hpp"
#include "tests/runtime/core/training/job_pieces.hpp"

namespace shoal::test {
BOOST_AUTO_TEST_SUITE(job_arrival_hold)

namespace {

/// Units move to peers 2 and 3.
struct held_up {
  held_up() {
    island_place a = make_place(1, 1);
    a.arriving = {{id(2), 0, 1}, {id(3), 1, 3}};
    d = duty_under(a, {7, 0}, peer(1));
  }
  bool asks(std::uint64_t step) {
    job_actions out;
    hold.ask_if_arrived(d, step, out);
    return !all<act::arrivals_complete>(out).empty();
  }

  duty d;
  arrival_hold hold;
};

} // namespace

BOOST_AUTO_TEST_CASE(steps_stop_when_receivers_are_a_step_behind_at_most) {
  held_up h;
  h.hold.take(h.d, peer(2), 9);
  BOOST_TEST(!h.hold.due(h.d, 9, 0)); // peer 3 is not in step
  h.hold.take(h.d, peer(3), 8);
  BOOST_TEST(h.hold.due(h.d, 9, 0));
  BOOST_TEST(!h.hold.due(h.d, 10, 0));
}

BOOST_AUTO_TEST_CASE(the_view_is_asked_for_once_when_all_are_at_the_boundary) {
  held_up h;
  h.hold.take(h.d, peer(2), 9);
  h.hold.take(h.d, peer(3), 8);
  BOOST_TEST(!h.asks(9));
  h.hold.take(h.d, peer(3), 9);
  h.hold.take(h.d, peer(3), 7); // a late message
  BOOST_TEST(h.asks(9));
  BOOST_TEST(!h.asks(9));
}

BOOST_AUTO_TEST_CASE(no_peer_waits_longer_than_the_limit) {
  held_up h;
  h.hold.take(h.d, peer(2), 9);
  h.hold.take(h.d, peer(3), 9);
  const nanoseconds begun = 1'000, longest = arrival_hold::hold_max;
  h.hold.begin(begun);
  BOOST_TEST(!h.hold.take_end(begun + longest - 1));
  BOOST_TEST(h.hold.take_end(begun + longest));
  const nanoseconds again = begun + longest + arrival_hold::hold_again_after;
  BOOST_TEST(!h.hold.due(h.d, 9, again - 1));
  BOOST_TEST(h.hold.due(h.d, 9, again));
}

BOOST_AUTO_TEST_CASE(nothing_is_held_up_where_nothing_arrives) {
  held_up h;
  h.hold.take(h.d, peer(4), 9); // no receiver
  BOOST_TEST(!h.hold.due(h.d, 9, 0));
  h.d = duty_under(make_place(1, 1), {7, 0}, peer(1));
  BOOST_TEST(!h.hold.due(h.d, 9, 0));
}

BOOST_AUTO_TEST_CASE(another_assignment_begins_with_nobody_in_step) {
  held_up h;
  h.hold.take(h.d, peer(2), 9);
  h.hold.take(h.d, peer(3), 9);
  h.hold.halt();
  BOOST_TEST(!h.hold.due(h.d, 9, 0));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
