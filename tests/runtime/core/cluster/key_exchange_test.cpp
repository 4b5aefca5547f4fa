// tests/runtime/core/cluster/key_exchange_test.cpp -- keys that are held, and
// the exchange that replaces one.
#include "runtime/core/cluster/key_exchange.hpp"
#include "tests/runtime/core/cluster/cluster_local.hpp"

#include <boost/test/unit_test.hpp>

namespace cluster_key_exchange {

using namespace shoal::tests;

namespace {

key_digest same_bytes(const cluster_key& key) {
  return key;
}

const cluster_key first{1};
const cluster_key second{2};
const cluster_key third{3};

struct fixture {
  standing s{{1, 2, 3, 4}};
  key_exchange x{{false, 500 * ms, 5'000 * ms}, key_ring(first, same_bytes)};
  actions out;
  std::vector<peer_id> all{peer(1), peer(2), peer(3), peer(4)};

  fixture() { s.current.key = first; }

  std::optional<change> go_on() { return x.go_on(s.here(), all, out); }
  void held_by(std::uint8_t n) {
    x.on(peer(n), key_held{s.current.shoal, second}, s.here());
  }
  /// Removes the messages of this kind from the actions.
  template <class Message>
  std::vector<send> sent() {
    std::vector<send> found;
    for (const action& a : out)
      if (const auto* m = std::get_if<send>(&a);
          m != nullptr && std::holds_alternative<Message>(m->what))
        found.push_back(*m);
    out.clear();
    return found;
  }
  bool refused_with(std::uint64_t tag) const {
    const auto* r = out.empty() ? nullptr : std::get_if<rejected>(&out.back());
    return r != nullptr && r->job == tag;
  }
};

} // namespace

} // namespace cluster_key_exchange

BOOST_FIXTURE_TEST_SUITE(cluster_key_exchange, cluster_key_exchange::fixture)

BOOST_AUTO_TEST_CASE(a_key_is_offered_to_all_but_the_peer_that_is_to_go) {
  x.revoke({peer(4), second, 77}, s.here(), out);
  BOOST_TEST_REQUIRE(out.size() == 2);
  BOOST_TEST(std::holds_alternative<persist>(out[0])); // K-3
  BOOST_TEST(std::holds_alternative<use_keys>(out[1]));
  BOOST_TEST(!go_on());
  const auto offers = sent<key_offer>();
  BOOST_TEST_REQUIRE(offers.size() == 1);
  BOOST_TEST((offers[0].to == std::vector{peer(2), peer(3)})); // K-1
}

BOOST_AUTO_TEST_CASE(the_view_is_wished_for_once_all_that_stay_hold_the_key) {
  x.revoke({peer(4), second, 77}, s.here(), out);
  held_by(2);
  BOOST_TEST(!go_on());
  held_by(3);
  const auto wish = go_on();
  BOOST_TEST_REQUIRE(wish.has_value());
  BOOST_TEST((wish->kind == change_kind::revoke));
  BOOST_TEST((wish->subject.peer == peer(4)));
  BOOST_TEST((wish->key == second));
  BOOST_TEST((wish->old_key == first));
  BOOST_TEST(!x.is_offering());
}

BOOST_AUTO_TEST_CASE(a_quorum_is_enough_after_some_patience) {
  x.revoke({peer(4), second, 77}, s.here(), out);
  held_by(2); // of 1, 2 and 3
  s.now = 499 * ms;
  BOOST_TEST(!go_on());
  s.now = 500 * ms;
  BOOST_TEST(go_on().has_value());
}

BOOST_AUTO_TEST_CASE(without_a_quorum_the_offer_ends) {
  x.revoke({peer(4), second, 77}, s.here(), out);
  s.now = 5'000 * ms;
  BOOST_TEST(!go_on());
  BOOST_TEST(refused_with(77));
  BOOST_TEST(!x.is_offering());
}

BOOST_AUTO_TEST_CASE(an_offer_ends_when_another_key_is_in_use) {
  x.revoke({peer(4), second, 77}, s.here(), out);
  s.current.key = third;
  BOOST_TEST(!go_on());
  BOOST_TEST(refused_with(77)); // K-2
}

BOOST_AUTO_TEST_CASE(one_revocation_at_a_time) {
  x.revoke({peer(4), second, 77}, s.here(), out);
  x.revoke({peer(3), third, 78}, s.here(), out);
  BOOST_TEST(refused_with(78));
  held_by(2);
  held_by(3);
  const auto wish = go_on();
  BOOST_TEST_REQUIRE(wish.has_value());
  x.revoke({peer(3), third, 79}, s.here(), out);
  BOOST_TEST(refused_with(79)); // the first is wished for, not yet decided
  s.current.revoked = {peer(4)};
  out.clear();
  x.settled(*wish, s.current, out);
  BOOST_TEST(out.empty());
  x.revoke({peer(3), third, 80}, s.here(), out);
  BOOST_TEST(x.is_offering());
}

BOOST_AUTO_TEST_CASE(a_revocation_that_another_key_made_void_is_reported) {
  x.revoke({peer(4), second, 77}, s.here(), out);
  held_by(2);
  held_by(3);
  const auto wish = go_on();
  BOOST_TEST_REQUIRE(wish.has_value());
  x.settled(*wish, s.current, out); // the peer is not revoked
  BOOST_TEST(refused_with(77));
}

BOOST_AUTO_TEST_CASE(the_key_of_a_view_is_taken_into_use_or_asked_for) {
  x.on(peer(2), key_offer{s.current.shoal, second}, s.here(), out);
  BOOST_TEST(sent<key_held>().size() == 1);
  s.current.key = second;
  BOOST_TEST(!x.follow(s.here(), out));
  BOOST_TEST((x.keys().current() == second));
  s.current.key = third;
  BOOST_TEST(x.follow(s.here(), out));
  out.clear();
  x.request(s.here(), all, out);
  const auto requests = sent<key_request>();
  BOOST_TEST_REQUIRE(requests.size() == 1);
  BOOST_TEST((requests[0].to == std::vector{peer(2), peer(3), peer(4)}));
  BOOST_TEST(!x.follow(s.here(), out)); // asked, a moment ago
}

BOOST_AUTO_TEST_CASE(strangers_neither_offer_a_key_nor_get_one) {
  x.on(peer(9), key_offer{s.current.shoal, second}, s.here(), out);
  x.on(peer(9), key_request{s.current.shoal, first}, s.here(), out);
  BOOST_TEST(out.empty());
  BOOST_TEST(x.keys().record().pending.empty());
  x.on(peer(2), key_request{s.current.shoal, first}, s.here(), out);
  BOOST_TEST(sent<key_offer>().size() == 1);
}

BOOST_AUTO_TEST_CASE(keys_are_told_apart_by_age) {
  key_ring& keys = x.keys();
  hello said;
  BOOST_TEST((keys.age_of(said) == key_age::same)); // not told
  said.key = second;
  BOOST_TEST((keys.age_of(said) == key_age::unrelated));
  said.replaced = {first};
  BOOST_TEST((keys.age_of(said) == key_age::newer));
  keys.hold(third);
  s.current.key = third;
  BOOST_TEST(keys.take_into_use(s.current));
  said.key = first;
  said.replaced.clear();
  BOOST_TEST((keys.age_of(said) == key_age::older));
  s.current.key = second; // of a view whose key we never got
  BOOST_TEST((keys.to_found_with(s.current) == third));
}

BOOST_AUTO_TEST_SUITE_END()
