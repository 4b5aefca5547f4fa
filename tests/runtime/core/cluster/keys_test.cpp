// tests/runtime/core/cluster/keys_test.cpp -- revocations, new keys, invites.
#include "tests/runtime/core/cluster/cluster_pair.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

namespace cluster_keys {

using namespace shoal::tests;

namespace {

const cluster_key fresh{7, 7};

/// Records which key messages each core is sent.
struct watched_pair : pair_of_nodes {
  std::size_t offers_to(const node& to) const {
    std::size_t n = 0;
    for (const node* from : {&a, &b})
      for (const action& x : from->said)
        if (auto* s = std::get_if<cluster::send>(&x))
          n += std::holds_alternative<key_offer>(s->what)
               && std::ranges::count(s->to, to.c.self.id.peer) > 0;
    return n;
  }
  void revoke(node& by, const peer_id& who, const cluster_key& key = fresh) {
    give(by, revoke_peer{who, key, 5});
  }
  void meet() {
    begin(a);
    begin(b);
    link();
    run(300 * ms);
    BOOST_TEST_REQUIRE(together());
  }
  cluster_key key_of(const node& n) const {
    return n.disk.keys ? n.disk.keys->current : n.c.key;
  }
};

} // namespace

} // namespace cluster_keys

BOOST_FIXTURE_TEST_SUITE(cluster_keys, cluster_keys::watched_pair)

BOOST_AUTO_TEST_CASE(a_revocation_puts_a_new_key_on_every_disk) {
  meet();
  revoke(b, peer(9));
  run(200 * ms); // no peer is waited for
  for (const node* n : {&a, &b}) {
    BOOST_TEST((n->core->current().key == digest(fresh)));
    BOOST_TEST(is_revoked(n->core->current(), peer(9)));
    BOOST_TEST((key_of(*n) == fresh));
    BOOST_TEST((n->disk.keys->replaced == std::vector<cluster_key>{{1}}));
  }
}

BOOST_AUTO_TEST_CASE(the_revoked_peer_is_never_offered_the_key) {
  meet();
  revoke(a, peer(2));
  run(5000 * ms);
  BOOST_TEST(is_revoked(a.core->current(), peer(2)));
  BOOST_TEST(a.core->current().members.size() == 1u);
  BOOST_TEST(offers_to(b) == 0u); // K-1, though it asks
  BOOST_TEST((key_of(b) == b.c.key));
}

BOOST_AUTO_TEST_CASE(a_silent_member_delays_a_revocation_by_half_a_second) {
  meet();
  b.core.reset();
  revoke(a, peer(9)); // the lowest id is half of the votes, and enough
  run(400 * ms);
  BOOST_TEST(!is_revoked(a.core->current(), peer(9)));
  run(400 * ms);
  BOOST_TEST(is_revoked(a.core->current(), peer(9)));
}

BOOST_AUTO_TEST_CASE(a_peer_that_was_away_gets_the_key_from_a_member) {
  meet();
  const history old = b.disk;
  b.core.reset();
  give(a, peer_down{peer(2)});
  revoke(a, peer(9));
  run(800 * ms);
  BOOST_TEST_REQUIRE(is_revoked(a.core->current(), peer(9)));
  b.disk = old;
  begin(b);
  link();
  run(2000 * ms);
  BOOST_TEST(together());
  BOOST_TEST((key_of(b) == fresh));
}

BOOST_AUTO_TEST_CASE(of_two_revocations_at_once_one_has_to_be_repeated) {
  meet();
  revoke(a, peer(8), {3});
  revoke(b, peer(9), {4});
  run(6000 * ms);
  const view& v = a.core->current();
  BOOST_TEST((v == b.core->current()));
  BOOST_TEST(v.revoked.size() == 1u); // K-2
  BOOST_TEST(a.count<rejected>() + b.count<rejected>() == 1u);
  BOOST_TEST((key_of(a) == key_of(b)));
}

// A shoal that had revoked a peer went into one that had not heard of it,
// and its members were split by keys when one of them left.
BOOST_AUTO_TEST_CASE(a_shoal_joins_none_whose_key_it_has_replaced) {
  begin(a);
  begin(b);
  revoke(a, peer(9));
  job_entry j;
  j.id = 9;
  give(b, submit_job{j}); // otherwise b would be the one to go on
  give(b, set_job_state{9, job_state::done, 1});
  const shoal_id kept = a.core->current().shoal;
  link();
  run(1000 * ms);
  BOOST_TEST(together());
  BOOST_TEST((b.core->current().shoal == kept)); // K-4
  BOOST_TEST((key_of(b) == fresh));
}

BOOST_AUTO_TEST_CASE(a_shoal_with_a_replaced_key_finishes_its_jobs_first) {
  begin(a);
  begin(b);
  revoke(a, peer(9));
  job_entry j;
  j.id = 9;
  give(b, submit_job{j});
  link();
  run(3000 * ms);
  BOOST_TEST(!together());
  BOOST_TEST(b.count<cluster::log>() == 1u); // it says so
  give(b, set_job_state{9, job_state::done, 1});
  run(1000 * ms);
  BOOST_TEST(together());
  BOOST_TEST(is_revoked(b.core->current(), peer(9)));
}

BOOST_AUTO_TEST_CASE(the_invited_join_the_inviter_whatever_the_ids) {
  for (int inviter : {0, 1}) {
    watched_pair w;
    w.begin(w.a);
    w.begin(w.b);
    node& n = inviter == 0 ? w.a : w.b;
    w.give(n, add_invite{{{5}, 100, {}}});
    w.run(100 * ms);
    const shoal_id kept = n.core->current().shoal;
    w.link();
    w.run(500 * ms);
    BOOST_TEST(w.together());
    BOOST_TEST((n.core->current().shoal == kept));
    BOOST_TEST(n.core->current().invites.size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(a_token_is_used_once_and_void_after_a_revocation) {
  meet();
  const auto user = [&](std::uint8_t token) {
    for (const invitation& i : b.core->current().invites)
      if (i.key == cluster_key{token})
        return i.used_by;
    return peer(99);
  };
  give(a, add_invite{{{5}, 100, {}}});
  give(a, add_invite{{{6}, 100, {}}});
  run(200 * ms);
  give(a, redeem_invite{{5}, peer(7)});
  give(b, redeem_invite{{5}, peer(8)});
  run(200 * ms);
  const peer_id first = user(5);
  BOOST_TEST((first == peer(7) || first == peer(8)));
  give(b, redeem_invite{{5}, peer(6)});
  run(200 * ms);
  BOOST_TEST((user(5) == first));
  BOOST_TEST((user(6) == peer_id{}));
  revoke(a, peer(9)); // it may have seen the view
  run(500 * ms);
  BOOST_TEST(a.core->current().invites.empty());
}

/// The peer that was asked is no quorum alone, and waits.
BOOST_AUTO_TEST_CASE(what_was_withdrawn_is_not_proposed_later) {
  for (const bool withdrawn : {false, true}) {
    watched_pair w;
    w.meet();
    w.linked = false;
    w.a.core.reset();
    w.give(w.b, peer_down{peer(1)});
    w.run(2000 * ms);
    BOOST_TEST((w.b.core->phase() == phase::waiting));
    job_entry j;
    j.id = 9;
    j.blocks = j.microbatches = 1;
    w.give(w.b, submit_job{j});
    w.give(w.b, add_invite{{{5}, 100, {}}});
    w.run(2000 * ms);
    if (withdrawn) {
      w.give(w.b, withdraw_job{9});
      w.give(w.b, withdraw_invite{{5}});
    }
    w.begin(w.a);
    w.link();
    w.run(4000 * ms);
    BOOST_TEST(w.together());
    const view& now = w.b.core->current();
    BOOST_TEST((find_job(now, 9) == nullptr) == withdrawn);
    BOOST_TEST(now.invites.empty() == withdrawn);
  }
}

// It was admitted to a view that names a key, and sent away again before it got
// that key; all holders of the key are gone for good.
BOOST_AUTO_TEST_CASE(a_new_shoal_names_no_key_that_its_founder_lacks) {
  view left;
  left.shoal = {9};
  left.number = 5;
  left.cluster = a.c.cluster;
  left.key = digest(fresh);
  member other;
  other.id.peer = peer(9);
  left.members = {other};
  a.disk.view = view_record{left, false, {}};
  a.disk.keys = key_record{{2}, {}, {a.c.key}};
  begin(a);
  run(4000 * ms); // no peer admits it
  BOOST_TEST_REQUIRE(a.core->seated());
  BOOST_TEST((a.core->current().key == digest(cluster_key{2})));
  begin(b);
  link();
  run(3000 * ms);
  BOOST_TEST_REQUIRE(together());
  BOOST_TEST((key_of(b) == cluster_key{2}));
}

BOOST_AUTO_TEST_SUITE_END()
