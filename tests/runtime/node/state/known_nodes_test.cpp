// tests/runtime/node/state/known_nodes_test.cpp -- reports about other nodes,
// and when they are made.
#include "runtime/node/state/known_nodes.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(nodes_that_are_known)

namespace {

core::member peer(std::uint8_t number, const char* name) {
  core::member m;
  m.id.peer.fill(number);
  m.name = name;
  m.addresses = {"10.0.0." + std::to_string(number) + ":18372"};
  return m;
}

core::view view_of(std::uint8_t shoal) {
  core::view v;
  v.shoal[0] = shoal;
  v.members = {peer(1, "anna"), peer(2, "bert")};
  return v;
}

bool says(const known_nodes::line& line, const char* part) {
  return line && line->find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_peer_of_another_cluster_is_reported_once) {
  known_nodes known("mine", 0);
  core::cluster::hello said;
  said.cluster = "other";
  said.name = "carl";
  said.addresses = {"10.0.0.3:1"};
  const auto from = peer(3, "carl").id.peer;
  BOOST_TEST(says(known.heard(from, said, 1), "--cluster other"));
  BOOST_TEST(!known.heard(from, said, 2));
  BOOST_TEST(known.all(2).apart.size() == 1);
  BOOST_TEST(known.all(2).strangers.empty());
  said.cluster = "mine";
  BOOST_TEST(!known.heard(from, said, 3));
  BOOST_TEST(known.all(3).strangers.size() == 1);
  // Its cable is out: the connection ends later.
  const std::int64_t silent = 3 + known_nodes::stranger_silence_ms;
  BOOST_TEST(known.all(silent).strangers.size() == 1);
  BOOST_TEST(known.all(silent + 1).strangers.empty());
  known.disconnected(from, 4);
  BOOST_TEST(known.all(4).strangers.empty());
  BOOST_TEST(known.all(4).versions.empty());
}

// Also of a member: it comes back, or this node does, as another build.
BOOST_AUTO_TEST_CASE(
  a_node_with_other_plans_is_reported_until_a_peer_connects) {
  known_nodes known("mine", 0);
  known.adopted(nullptr, std::make_shared<const core::view>(view_of(1)), 0);
  BOOST_TEST(known.other_build().empty());
  BOOST_TEST(
    says(known.plans_otherwise("10.0.0.1:18372", "install", 1), "install"));
  BOOST_TEST(!known.plans_otherwise("10.0.0.1:18372", "install", 2));
  BOOST_TEST(known.all(2).apart.size() == 1);
  BOOST_TEST(known.other_build() == "10.0.0.1:18372");
  known.connected(peer(2, "bert").id.peer);
  BOOST_TEST(known.other_build().empty());
}

BOOST_AUTO_TEST_CASE(
  a_member_or_a_peer_that_gave_its_reason_is_not_reported_again) {
  known_nodes known("mine", 0);
  known.uses_key("abcd");
  known.adopted(nullptr, std::make_shared<const core::view>(view_of(1)), 0);
  BOOST_TEST(!known.not_proved("10.0.0.1:18372", 1)); // a member's
  BOOST_TEST(says(known.not_proved("10.0.0.3:1", 1), "abcd"));
  BOOST_TEST(says(known.refused("10.0.0.4:1", "it is full", 1), "it is full"));
  BOOST_TEST(!known.not_proved("10.0.0.4:1", 2));
  known.reached("10.0.0.3:1");
  known.reached("10.0.0.4:1");
  BOOST_TEST(known.all(2).apart.empty());
}

// It was started with another key than the shoal's, say, or this node was.
BOOST_AUTO_TEST_CASE(a_member_that_does_not_prove_the_key_is_named) {
  known_nodes known("mine", 0);
  core::view v = view_of(1);
  known.adopted(nullptr, std::make_shared<const core::view>(v), 0);
  known.uses_key("abcd");
  BOOST_TEST(known.key_in_use() == "abcd");
  const std::string address = v.members[0].addresses[0];
  BOOST_TEST(known.unproved(v.members).empty());
  BOOST_TEST(!known.not_proved(address, 1));
  BOOST_TEST(says(known.not_proved("10.9.9.9:18372", 1), "abcd"));
  BOOST_TEST(known.unproved(v.members) == "anna at " + address);
  BOOST_TEST(known.unproved({}).empty());
  known.reached(address);
  BOOST_TEST(known.unproved(v.members).empty());
  BOOST_TEST(!known.not_proved(address, 2));
  const core::view before = v;
  v.members.erase(v.members.begin());
  known.adopted(&before, std::make_shared<const core::view>(v), 3);
  BOOST_TEST(known.unproved(before.members).empty());
}

BOOST_AUTO_TEST_CASE(another_peer_of_the_same_name_is_reported_once) {
  known_nodes known("mine", 0);
  const core::peer_id self = peer(2, "bert").id.peer;
  BOOST_TEST(!known.namesake(self)); // no view yet
  core::view v = view_of(1);
  const auto adopt = [&] {
    known.adopted(nullptr, std::make_shared<const core::view>(v), 0);
    return known.namesake(self);
  };
  BOOST_TEST(!adopt());
  v.members.push_back(peer(3, "bert"));
  const auto line = adopt();
  BOOST_TEST(says(line, "bert"));
  BOOST_TEST(says(line, "at 10.0.0.3:18372"));
  BOOST_TEST(says(line, "--name"));
  BOOST_TEST(!adopt());
  v.members.pop_back();
  BOOST_TEST(!adopt());
  v.members.push_back(peer(3, "bert")); // it has come back
  BOOST_TEST(says(adopt(), "bert"));
  BOOST_TEST(!known.namesake(peer(1, "anna").id.peer));
}

BOOST_AUTO_TEST_CASE(the_first_that_calls_this_node_revoked_is_remembered) {
  known_nodes known("mine", 0);
  known.adopted(nullptr, std::make_shared<const core::view>(view_of(1)), 0);
  BOOST_TEST(known.strange("10.0.0.9", 1).has_value());
  BOOST_TEST(known.accuser() == "");
  known.revoked_by("10.0.0.2:18372", 1);
  known.revoked_by("10.0.0.1:18372", 2);
  BOOST_TEST(known.accuser().starts_with("bert (10.0.0.2:18372) said at "),
             known.accuser());
  // Announcements of another key are then no wonder.
  BOOST_TEST(!known.strange("10.0.0.8", 3).has_value());
}

// With a wrong key, a node hears a machine's announcements and dials its nodes.
BOOST_AUTO_TEST_CASE(a_machine_of_another_key_is_listed_once) {
  known_nodes known("mine", 0);
  const auto addresses = [&](std::int64_t now) {
    std::vector<std::string> out;
    for (const apart_node& n : known.all(now).apart)
      out.push_back(n.address);
    return out;
  };
  known.adopted(nullptr, std::make_shared<const core::view>(view_of(1)), 0);
  BOOST_TEST(known.strange("10.0.0.9", 1).has_value());
  BOOST_TEST(known.not_proved("10.0.0.9:18372", 2).has_value());
  BOOST_TEST(!known.strange("10.0.0.9", 3).has_value());
  BOOST_TEST(addresses(3) == std::vector<std::string>{"10.0.0.9:18372"},
             boost::test_tools::per_element());
  BOOST_TEST(known.all(3).apart.front().latest_ms == 3);
  known.not_proved("10.0.0.9:18373", 4); // a second node there
  BOOST_TEST(addresses(4).size() == 2u);
}

BOOST_AUTO_TEST_CASE(members_that_use_an_old_key_are_not_strange) {
  known_nodes known("mine", 0);
  core::view v = view_of(1);
  v.key[0] = 1; // it was replaced
  known.adopted(nullptr, std::make_shared<const core::view>(v), 0);
  BOOST_TEST(known.strange("10.0.0.1", 1).has_value());
  known.admitted(v);
  BOOST_TEST(known.all(1).apart.empty());
  BOOST_TEST(!known.strange("10.0.0.1", 2).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
