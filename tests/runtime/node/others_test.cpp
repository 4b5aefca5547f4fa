// tests/runtime/node/others_test.cpp -- a node's knowledge of other nodes.
#include "runtime/core/view.hpp"
#include "runtime/discovery/apart_nodes.hpp"
#include "runtime/node/state/absent_peers.hpp"
#include "runtime/work/capped_map.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(others)

namespace {

core::member peer(std::uint8_t number, const char* name) {
  core::member m;
  m.id.peer.fill(number);
  m.name = name;
  m.addresses = {"10.0.0." + std::to_string(number) + ":18372"};
  return m;
}

bool says(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_peer_is_meant_by_name_address_host_or_id) {
  core::view v;
  v.members = {peer(1, "anna"), peer(2, "bert")};
  const absent_peers none(0);
  for (const char* word : {"bert", "10.0.0.2:18372", "bert:18372", "0202"})
    BOOST_TEST((none.find(v, word, 0).peer == v.members[1].id.peer), word);
  BOOST_TEST(says(none.find(v, "brt", 0).why, "mean 'bert'"));
  BOOST_TEST(says(none.find(v, "02", 0).why, "no peer '02'"));
  v.members[0].name = "bert";
  BOOST_TEST(says(none.find(v, "bert", 0).why, "several"));
}

BOOST_AUTO_TEST_CASE(a_former_member_is_remembered_until_it_returns) {
  core::view before;
  before.members = {peer(1, "anna"), peer(2, "bert")};
  core::view now = before;
  now.members.pop_back();
  now.revoked = {before.members[1].id.peer};
  absent_peers peers(0);
  peers.adopted(&before, now, 1000);
  const std::string why = peers.find(now, "bert", 5000).why;
  BOOST_TEST(says(why, "bert (02020202) was revoked"), why);
  BOOST_TEST(says(why, "4 s ago"), why);
  BOOST_TEST_REQUIRE(peers.former().size() == 1u);
  BOOST_TEST((peers.former()[0].how == departure::revoked));
  peers.adopted(&now, before, 6000);
  BOOST_TEST(peers.former().empty());
  BOOST_TEST(peers.find(before, "bert", 7000).why == "");
}

BOOST_AUTO_TEST_CASE(a_former_member_was_lost_or_left_or_stayed_elsewhere) {
  core::view before;
  before.members = {peer(1, "anna"), peer(2, "bert"), peer(3, "cleo")};
  before.members[2].state = core::member_state::leaving;
  core::view now = before;
  now.members.resize(1);
  absent_peers peers(0);
  peers.adopted(&before, now, 1000);
  BOOST_TEST_REQUIRE(peers.former().size() == 2u);
  BOOST_TEST((peers.former()[0].how == departure::lost));
  BOOST_TEST((peers.former()[1].how == departure::left));
  BOOST_TEST(peers.former()[1].name == "cleo");
  core::view forced = now; // as by `recover --force`
  forced.shoal = {8};
  forced.superseded = {{now.shoal, now.number}};
  forced.members = {peer(5, "emil")};
  peers.adopted(&now, forced, 1500);
  BOOST_TEST((peers.former().back().how == departure::lost));
  now.revoked = {before.members[1].id.peer};
  peers.adopted(nullptr, now, 1700);
  BOOST_TEST((peers.former()[0].how == departure::revoked));
  BOOST_TEST(peers.former()[0].unix_ms == 1700);
  core::view other;
  other.shoal = {9};
  other.members = {peer(4, "dora")};
  peers.adopted(&now, other, 2000);
  BOOST_TEST((peers.former().back().how == departure::stayed));
}

BOOST_AUTO_TEST_CASE(a_list_of_nodes_that_are_apart_has_an_end) {
  apart_nodes nodes;
  for (std::size_t i = 0; i < apart_nodes::nodes_max; ++i)
    BOOST_TEST(nodes.met(std::to_string(i), "why", 0));
  BOOST_TEST(!nodes.met("one more", "why", 0));
  BOOST_TEST(!nodes.met("0", "why", 0)); // no news
  BOOST_TEST(nodes.met("0", "why else", 0));
  BOOST_TEST(nodes.list(0).size() == apart_nodes::nodes_max);
  BOOST_TEST(nodes.met("one more", "why", apart_nodes::memory_ms + 1));
  BOOST_TEST(nodes.list(apart_nodes::memory_ms + 1).size() == 1u);
}

BOOST_AUTO_TEST_CASE(events_are_counted_for_a_minute) {
  recent_count count;
  BOOST_TEST(count.last_minute(0) == 0u);
  count.add(1000);
  count.add(1500);
  count.add(31000);
  BOOST_TEST(count.last_minute(60999) == 3u);
  BOOST_TEST(count.last_minute(61000) == 1u);
  BOOST_TEST(count.age_ms(35000) == 4000);
}

BOOST_AUTO_TEST_CASE(a_full_map_takes_no_other_key) {
  capped_map<int, int, 2> map;
  BOOST_TEST((map.put(1, 1) && map.put(2, 2) && map.put(1, 3)));
  BOOST_TEST(!map.put(3, 3));
  map.erase(1);
  BOOST_TEST(map.put(3, 3));
  BOOST_TEST(map.all().size() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
