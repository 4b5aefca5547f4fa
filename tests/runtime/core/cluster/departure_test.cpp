// tests/runtime/core/cluster/departure_test.cpp -- giving up work, then the
// seat.
#include "runtime/core/cluster/local/departure.hpp"
#include "tests/runtime/core/cluster/cluster_local.hpp"

#include <boost/test/unit_test.hpp>

namespace cluster_departure {

using namespace shoal::tests;

namespace {

struct fixture {
  standing s{{1, 2}};
  departure d{5'000 * ms, 2'000 * ms};

  bool next_is(departure_step expected, bool others_depend_on_us = false) {
    return d.next(s.here(), others_depend_on_us) == expected;
  }
};

} // namespace

} // namespace cluster_departure

BOOST_FIXTURE_TEST_SUITE(cluster_departure, cluster_departure::fixture)

BOOST_AUTO_TEST_CASE(a_leaver_gives_up_its_work_and_then_its_seat) {
  BOOST_TEST(!d.has_begun());
  d.begin(0);
  BOOST_TEST(next_is(departure_step::wish_no_work));
  d.begin_at_once(0);
  BOOST_TEST(next_is(departure_step::wish_no_seat));
}

BOOST_AUTO_TEST_CASE(a_shoal_of_one_sleeps_with_its_member) {
  standing alone{{1}};
  d.begin(0);
  BOOST_TEST((d.next(alone.here(), false) == departure_step::stay));
  d.begin_at_once(0);
  BOOST_TEST((d.next(alone.here(), false) == departure_step::go_and_keep));
}

BOOST_AUTO_TEST_CASE(without_a_quorum_it_goes_unheard_after_a_while) {
  d.begin(0);
  s.phase = phase::waiting;
  s.now = 1'999 * ms;
  BOOST_TEST(next_is(departure_step::wish_no_work));
  BOOST_TEST(d.deadline(s.now) == 2'000 * ms);
  s.now = 2'000 * ms;
  BOOST_TEST(next_is(departure_step::go_unheard));
}

BOOST_AUTO_TEST_CASE(with_a_quorum_that_does_not_agree_it_goes_at_last) {
  d.begin_at_once(0);
  for (s.now = 0; s.now < 5'000 * ms; s.now += 500 * ms)
    BOOST_TEST(next_is(departure_step::wish_no_seat));
  BOOST_TEST(next_is(departure_step::go_unheard));
}

BOOST_AUTO_TEST_CASE(a_peer_without_a_seat_keeps_what_only_it_can_tell) {
  d.begin(0);
  s.seated = false;
  BOOST_TEST(next_is(departure_step::go_and_forget));
  BOOST_TEST(next_is(departure_step::go_and_keep, true));
  BOOST_TEST(d.take_handing_on(s.here()));
  BOOST_TEST(!d.take_handing_on(s.here())); // once
  BOOST_TEST(next_is(departure_step::go_and_forget, true));
}

BOOST_AUTO_TEST_CASE(only_a_leaver_without_a_seat_lingers) {
  d.follow(true);
  BOOST_TEST(!d.lingers());
  d.begin_at_once(0);
  d.follow(false);
  BOOST_TEST(!d.lingers());
  d.follow(true);
  BOOST_TEST(d.lingers());
}

BOOST_AUTO_TEST_CASE(it_lingers_until_a_quorum_knows_or_no_peer_is_there) {
  d.begin_at_once(0);
  d.follow(true);
  BOOST_TEST((d.linger(false, true, 1'000 * ms) == departure_step::stay));
  BOOST_TEST(
    (d.linger(true, true, 1'000 * ms) == departure_step::go_and_forget));
  BOOST_TEST((d.linger(false, false, 2'999 * ms) == departure_step::stay));
  BOOST_TEST(
    (d.linger(false, false, 3'000 * ms) == departure_step::go_unheard));
  BOOST_TEST((d.linger(false, true, 5'000 * ms) == departure_step::go_unheard));
}

BOOST_AUTO_TEST_SUITE_END()
