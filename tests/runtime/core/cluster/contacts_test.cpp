// tests/runtime/core/cluster/contacts_test.cpp -- connected peers, and when
// they are told about this peer.
#include "tests/runtime/core/cluster/cluster_local.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(cluster_contacts)

using namespace shoal::tests;

namespace {

hello from_address(const std::string& address) {
  hello h;
  h.addresses = {address};
  return h;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_contact_that_goes_leaves_its_addresses) {
  contacts c;
  BOOST_TEST(c.add(peer(2), 7));
  c.hear(peer(2), from_address("x:1"), 0);
  BOOST_TEST(c.remove(peer(2)) == std::vector<std::string>{"x:1"},
             boost::test_tools::per_element());
  BOOST_TEST(c.empty());
  BOOST_TEST(c.remove(peer(2)).empty());
}

BOOST_AUTO_TEST_CASE(more_than_the_limit_are_not_taken) {
  contacts c;
  for (std::size_t n = 0; n < contacts_max; ++n) {
    peer_id id{};
    id[0] = std::uint8_t(n);
    id[1] = std::uint8_t(n >> 8);
    id[2] = 1;
    BOOST_TEST_REQUIRE(c.add(id, 1));
  }
  BOOST_TEST(!c.add(peer(2), 1));
  BOOST_TEST(!c.contains(peer(2)));
}

BOOST_AUTO_TEST_CASE(strangers_are_greeted_again_and_members_once) {
  standing s({1, 2});
  s.connected.add(peer(2), 1);
  s.connected.add(peer(9), 1);
  s.connected.hear_of_view(peer(2), s.current.shoal, s.current.number);
  BOOST_TEST(s.connected.take_to_greet(s.current, 5).size() == 2);
  BOOST_TEST(s.connected.take_to_greet(s.current, 6).empty());
  BOOST_TEST(s.connected.greeting_due(6) == 5 + hello_interval);
  const auto later = s.connected.take_to_greet(s.current, 5 + hello_interval);
  BOOST_TEST((later == std::vector{peer(9)}));
  s.connected.greet_all();
  BOOST_TEST(s.connected.take_to_greet(s.current, 5 + hello_interval).size()
             == 2);
}

BOOST_AUTO_TEST_CASE(a_first_hello_is_answered_at_once) {
  standing s({1});
  s.connected.add(peer(9), 1);
  s.connected.take_to_greet(s.current, 5);
  s.connected.hear(peer(9), hello{}, 6);
  BOOST_TEST(s.connected.take_to_greet(s.current, 6).size() == 1);
  s.connected.hear(peer(9), hello{}, 7);
  BOOST_TEST(s.connected.take_to_greet(s.current, 7).empty());
}

BOOST_AUTO_TEST_CASE(a_decision_counts_only_for_the_shoal_that_it_is_in) {
  standing s({1, 2});
  s.connected.add(peer(2), 1);
  s.connected.hear_of_view(peer(2), shoal_of(5), 3);
  s.connected.hear_of_decision(peer(2), s.current);
  BOOST_TEST(s.connected.find(peer(2))->number == 3);
  s.connected.hear_of_view(peer(2), s.current.shoal, 3);
  s.connected.hear_of_decision(peer(2), s.current);
  BOOST_TEST(s.connected.find(peer(2))->number == 10);
}

BOOST_AUTO_TEST_CASE(an_address_is_known_by_the_view_or_by_the_peer) {
  standing s({1, 2, 3});
  s.connected.add(peer(2), 1);
  s.connected.hear(peer(2), from_address("x:1"), 0);
  BOOST_TEST(s.connected.includes_address("2:1", s.current));
  BOOST_TEST(s.connected.includes_address("x:1", s.current));
  BOOST_TEST(!s.connected.includes_address("3:1", s.current));
}

BOOST_AUTO_TEST_SUITE_END()
