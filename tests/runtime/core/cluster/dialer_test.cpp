// tests/runtime/core/cluster/dialer_test.cpp -- when to connect to which
// address.
#include "runtime/core/cluster/local/dialer.hpp"
#include "tests/runtime/core/cluster/cluster_local.hpp"

#include <boost/test/unit_test.hpp>

namespace cluster_dialer {

using namespace shoal::tests;

namespace {

using addresses = dialer::addresses;

struct fixture {
  standing s{{1, 2}};
  cluster::random spread{1};
  dialer d{{{"seed:1"}, false, 5'000 * ms}};

  addresses due() { return d.dial_due(s.here(), spread); }
  addresses due_at(nanoseconds now) {
    s.now = now;
    return due();
  }
};

} // namespace

} // namespace cluster_dialer

BOOST_FIXTURE_TEST_SUITE(cluster_dialer, cluster_dialer::fixture)

BOOST_AUTO_TEST_CASE(
  a_member_without_a_connection_is_dialled_until_it_answers) {
  s.seated = false;
  BOOST_TEST((due() == addresses{"2:1", "seed:1"}));
  BOOST_TEST(due_at(1 * ms).empty()); // the attempt is under way
  d.failed("2:1", 2 * ms);
  BOOST_TEST(due_at(101 * ms).empty());
  BOOST_TEST((due_at(102 * ms) == addresses{"2:1"}));
  d.failed("2:1", 103 * ms); // the pause doubles
  BOOST_TEST(due_at(302 * ms).empty());
  BOOST_TEST((due_at(303 * ms) == addresses{"2:1"}));
  s.connected.add(peer(2), 1);
  // The member is there; the seed has not answered, and this peer has no seat.
  BOOST_TEST((due_at(20'000 * ms) == addresses{"seed:1"}));
}

BOOST_AUTO_TEST_CASE(after_many_failures_an_address_is_tried_less_often) {
  dialer idle{{{}, false, 0}};
  nanoseconds now = 0;
  for (int n = 0; n <= eager_dials; ++n) {
    s.now = now;
    BOOST_TEST_REQUIRE(idle.dial_due(s.here(), spread).size() == 1);
    idle.failed("2:1", now);
    now += dial_pause_max;
  }
  s.now = now;
  BOOST_TEST(idle.dial_due(s.here(), spread).empty());
  s.now = now - dial_pause_max + dial_pause_idle;
  BOOST_TEST(idle.dial_due(s.here(), spread).size() == 1);
}

BOOST_AUTO_TEST_CASE(own_and_connected_addresses_are_not_dialled) {
  s.connected.add(peer(2), 1);
  BOOST_TEST(d.dial_once({"1:1", "2:1", ""}, s.here()).empty());
  BOOST_TEST(d.dial_once({"name:1"}, s.here()).size() == 1);
  d.reached("name:1", peer(2), s.connected); // that name leads to it
  BOOST_TEST(d.dial_once({"name:1"}, s.here()).empty());
}

BOOST_AUTO_TEST_CASE(a_seed_is_tried_in_company_now_and_then) {
  s.connected.add(peer(2), 1);
  BOOST_TEST((due() == addresses{"seed:1"}));
  d.failed("seed:1", 1 * ms);
  BOOST_TEST(due_at(seed_pause - 1).empty());
  const nanoseconds second = d.deadline(s.here());
  BOOST_TEST(second >= seed_pause);
  BOOST_TEST(second < seed_pause + seed_pause / 4);
  BOOST_TEST((due_at(second) == addresses{"seed:1"}));
  d.failed("seed:1", second);
  BOOST_TEST(due_at(second + 2 * seed_pause - 1).empty());
}

BOOST_AUTO_TEST_CASE(an_embedded_peer_tries_seeds_only_on_its_own) {
  dialer embedded{{{"seed:1"}, true, 0}};
  s.connected.add(peer(2), 1);
  BOOST_TEST(embedded.dial_due(s.here(), spread).empty());
  BOOST_TEST(embedded.discovered("x:1", false, s.here(), spread).empty());
  s.phase = phase::homeless;
  BOOST_TEST((embedded.dial_due(s.here(), spread) == addresses{"seed:1"}));
}

BOOST_AUTO_TEST_CASE(
  a_listed_address_waits_in_company_and_a_heard_one_does_not) {
  BOOST_TEST(d.discovered("x:1", true, s.here(), spread).size() == 1);
  d.failed("x:1", 0);
  BOOST_TEST(d.discovered("x:1", true, s.here(), spread).empty());
  BOOST_TEST(d.discovered("x:1", false, s.here(), spread).size() == 1);
}

BOOST_AUTO_TEST_CASE(a_peer_that_has_just_gone_is_dialled_at_once) {
  d.dial_once({"2:1"}, s.here());
  BOOST_TEST(d.dial_once({"2:1"}, s.here()).empty());
  BOOST_TEST((d.redial({"2:1"}, false, s.here()) == addresses{"2:1"}));
}

BOOST_AUTO_TEST_CASE(an_address_is_open_until_its_first_attempt_has_failed) {
  BOOST_TEST(d.is_open("2:1", s.here()));
  due();
  BOOST_TEST(d.is_open("2:1", s.here()));
  d.failed("2:1", 0);
  BOOST_TEST(!d.is_open("2:1", s.here()));
  BOOST_TEST(!d.is_open("1:1", s.here())); // our own
}

BOOST_AUTO_TEST_CASE(
  an_address_that_calls_us_revoked_rests_until_the_next_view) {
  BOOST_TEST(d.turned_away("2:1", support::quorum));
  BOOST_TEST(!d.turned_away("2:1", support::quorum)); // said once
  BOOST_TEST((due() == addresses{"seed:1"}));
  d.trust_all();
  BOOST_TEST((due() == addresses{"2:1"}));
}

// It may have lied, and its members come back.
BOOST_AUTO_TEST_CASE(what_a_member_was_told_does_not_count_later) {
  BOOST_TEST(!d.shut_out_by(support::quorum, 0));
  d.turned_away("2:1", support::quorum);
  BOOST_TEST(!d.shut_out_by(support::quorum, 9'000 * ms));
  BOOST_TEST(!d.shut_out_by(support::none, 9'000 * ms));
  BOOST_TEST(!d.shut_out_by(support::none, 90'000 * ms));
}

BOOST_AUTO_TEST_CASE(a_revocation_counts_if_no_other_peer_is_there_for_long) {
  d.turned_away("2:1", support::none);
  BOOST_TEST(!d.shut_out_by(support::none, 0));
  BOOST_TEST(d.is_shut_out());
  BOOST_TEST(!d.shut_out_by(support::none, 4'999 * ms));
  BOOST_TEST(d.shut_out_by(support::none, 5'000 * ms).value_or("") == "2:1");
}

// A contact may be another peer that nobody admits: it proves nothing.
BOOST_AUTO_TEST_CASE(a_contact_puts_the_end_of_a_revoked_peer_off) {
  d.turned_away("2:1", support::none);
  BOOST_TEST(!d.shut_out_by(support::none, 0));
  BOOST_TEST(!d.shut_out_by(support::contact, 4'999 * ms));
  BOOST_TEST(!d.is_shut_out()); // that peer may tell
  BOOST_TEST(!d.shut_out_by(support::contact, 60'000 * ms));
  BOOST_TEST(!d.shut_out_by(support::none, 60'001 * ms));
  BOOST_TEST(d.is_shut_out());
  BOOST_TEST(!d.shut_out_by(support::none, 65'000 * ms));
  BOOST_TEST(d.shut_out_by(support::none, 65'001 * ms).value_or("") == "2:1");
}

BOOST_AUTO_TEST_CASE(
  a_revocation_told_beside_a_contact_counts_once_it_is_gone) {
  d.turned_away("2:1", support::contact);
  BOOST_TEST(!d.shut_out_by(support::contact, 9'000 * ms));
  BOOST_TEST(!d.shut_out_by(support::none, 10'000 * ms));
  BOOST_TEST(d.shut_out_by(support::none, 15'000 * ms).value_or("") == "2:1");
}

BOOST_AUTO_TEST_CASE(a_quorum_refutes_a_revocation) {
  d.turned_away("2:1", support::none);
  BOOST_TEST(!d.shut_out_by(support::none, 0));
  BOOST_TEST(!d.shut_out_by(support::quorum, 4'999 * ms));
  BOOST_TEST(!d.is_shut_out());
  BOOST_TEST(!d.shut_out_by(support::none, 5'000 * ms));
  BOOST_TEST(!d.shut_out_by(support::none, 60'000 * ms));
}

BOOST_AUTO_TEST_SUITE_END()
