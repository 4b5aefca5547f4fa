// tests/transport/tls/keyring_test.cpp -- the peers that a keyring admits.
#include "transport/tls/keyring.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::transport::tls {
BOOST_AUTO_TEST_SUITE(keyrings)

namespace {

const exporter binding{1, 2, 3};
const peer_id friends{7};
const peer_id stranger{8};
const peer_id banned{9};

keyring some() {
  keyring k;
  k.current = {1};
  k.pending = {{2}};
  k.replaced = {{3}, {4}};
  k.known = {friends};
  k.revoked = {banned};
  k.invites = {{{5}, 100, {}}, {{6}, 100, friends}};
  return k;
}

judgement ask(const peer_id& id, std::uint8_t key,
              peer_role role = peer_role::member, std::int64_t now = 50) {
  return admit(some(), binding, id,
               make_proof({key}, binding, side::dialler, id, {role, 77, 0}),
               now);
}

BOOST_AUTO_TEST_CASE(current_and_pending_keys_are_for_everybody) {
  for (std::uint8_t key : {1, 2}) {
    const auto j = ask(stranger, key);
    BOOST_TEST(!j.wrong);
    BOOST_TEST((j.key == shared_key{key}));
    BOOST_TEST(j.what.instance == 77u);
  }
  BOOST_TEST(ask(stranger, 99).wrong);
  BOOST_TEST(!ask(stranger, 99).because); // it learns nothing
}

BOOST_AUTO_TEST_CASE(a_replaced_key_admits_known_peers_only) {
  for (std::uint8_t key : {3, 4}) {
    BOOST_TEST(!ask(friends, key).wrong);
    BOOST_TEST((ask(stranger, key).because == refusal::key_replaced));
    BOOST_TEST(ask(stranger, key, peer_role::client).wrong);
  }
}

BOOST_AUTO_TEST_CASE(the_revoked_are_refused_with_any_key) {
  for (std::uint8_t key : {1, 2, 3})
    BOOST_TEST((ask(banned, key).because == refusal::revoked));
  BOOST_TEST((ask(banned, 5, peer_role::invitee).because == refusal::revoked));
}

BOOST_AUTO_TEST_CASE(a_token_admits_one_joiner_for_a_time) {
  BOOST_TEST(!ask(stranger, 5, peer_role::invitee).wrong);
  BOOST_TEST((ask(stranger, 5, peer_role::invitee, 100).because
              == refusal::invite_expired));
  BOOST_TEST(!ask(friends, 6, peer_role::invitee).wrong);
  BOOST_TEST(
    (ask(stranger, 6, peer_role::invitee).because == refusal::invite_used));
  BOOST_TEST(ask(stranger, 5).wrong); // no member by a token
  BOOST_TEST(ask(stranger, 5, peer_role::client).wrong);
  BOOST_TEST(ask(stranger, 1, peer_role::invitee).wrong);
}

BOOST_AUTO_TEST_CASE(a_refusal_is_read_by_the_dialler_alone) {
  const auto frame = make_refusal({1}, binding, friends, refusal::duplicate);
  claim what;
  std::optional<refusal> because;
  BOOST_TEST(
    check_proof({1}, binding, side::acceptor, friends, frame, what, &because));
  BOOST_TEST((because == refusal::duplicate));
  because.reset();
  BOOST_TEST(
    check_proof({2}, binding, side::acceptor, friends, frame, what, &because));
  BOOST_TEST(!because);
  BOOST_TEST(
    check_proof({1}, binding, side::dialler, friends, frame, what, &because));
  BOOST_TEST(!because);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace shoal::transport::tls
