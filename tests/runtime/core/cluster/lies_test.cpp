// tests/runtime/core/cluster/lies_test.cpp -- lies of a peer that holds the
// key, and which are rejected: numbers far above all others.
#include "tests/runtime/core/cluster/cluster_pair.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

namespace cluster_lies {

using namespace shoal::tests;

namespace {

constexpr epoch far = epoch{1} << 62; // what the codec lets through

struct lied_to : pair_of_nodes {
  lied_to() {
    begin(a);
    begin(b);
    link();
    run(300 * ms);
    BOOST_TEST_REQUIRE(together());
    give(a, peer_up{peer(9), 77}); // the liar
  }

  /// The shoal's next view as the liar would have it.
  view wrong(epoch number) const {
    view v = a.core->current();
    v.number = number;
    member m = v.members[0];
    m.id.peer = peer(9);
    m.instance = 77;
    v.members.push_back(m);
    return v;
  }

  void tell_a(const peer_id& from, message m) {
    give(a, received{from, std::move(m)});
  }

  /// Whether the shoal still decides.
  bool goes_on() {
    const epoch before = a.core->current().number;
    job_entry j;
    j.id = 4711 + before;
    give(a, submit_job{j});
    run(2000 * ms);
    return find_job(b.core->current(), j.id) != nullptr
           && a.core->current() == b.core->current()
           && a.core->current().number < before + 100;
  }

  template <class Message>
  std::vector<Message> sent_by_a() const {
    return sent_by<Message>(a);
  }
  template <class Message>
  static std::vector<Message> sent_by(const node& n) {
    std::vector<Message> out;
    for (const action& x : n.said)
      if (auto* s = std::get_if<cluster::send>(&x))
        if (auto* m = std::get_if<Message>(&s->what))
          out.push_back(*m);
    return out;
  }
};

} // namespace

} // namespace cluster_lies

BOOST_FIXTURE_TEST_SUITE(cluster_lies, cluster_lies::lied_to)

BOOST_AUTO_TEST_CASE(a_view_far_above_ours_is_not_adopted) {
  const view before = a.core->current();
  for (epoch number : {far, far - 1, before.number + (epoch{1} << 40)}) {
    tell_a(peer(9), decided{wrong(number)});
    BOOST_TEST(a.core->current().number == before.number);
  }
  BOOST_TEST(a.count<cluster::log>() > 0u);
  BOOST_TEST(goes_on());
}

BOOST_AUTO_TEST_CASE(a_view_of_a_peer_that_was_long_away_from_us_is_adopted) {
  // Others have decided a million views meanwhile.
  const epoch ahead = a.core->current().number + 1'000'000;
  view v = a.core->current();
  v.number = ahead;
  tell_a(peer(2), decided{v});
  BOOST_TEST(a.core->current().number == ahead);
}

BOOST_AUTO_TEST_CASE(far_numbers_inside_a_view_are_not_adopted) {
  view v = wrong(a.core->current().number + 1);
  v.members.back().id.incarnation = far;
  tell_a(peer(9), decided{v});
  BOOST_TEST(a.core->current().members.size() == 2u);
  v = wrong(a.core->current().number + 1);
  v.jobs.push_back({});
  set_mark(v.jobs.back(),
           {mark_kind::retried, 0, far, 0}); // no honest retry would ever count
  tell_a(peer(9), decided{v});
  BOOST_TEST(a.core->current().members.size() == 2u);
  BOOST_TEST(goes_on());
}

BOOST_AUTO_TEST_CASE(a_joiner_far_above_is_not_admitted) {
  join_request r;
  r.shoal = a.core->current().shoal;
  r.draft = a.c.self;
  r.draft.id.peer = peer(9);
  r.draft.instance = 77;
  r.floor = far;
  tell_a(peer(9), r);
  run(1000 * ms);
  BOOST_TEST(a.core->current().members.size() == 2u);
  BOOST_TEST(goes_on());
}

BOOST_AUTO_TEST_CASE(far_numbers_of_strangers_ask_for_nothing) {
  const shoal_id shoal = a.core->current().shoal;
  a.said.clear();
  tell_a(peer(9), heartbeat{shoal, far, 1});
  tell_a(peer(9), heartbeat_ack{shoal, far, 1});
  tell_a(peer(9), gossip{shoal, far, {}});
  hello h;
  h.shoal = shoal;
  h.number = far;
  h.cluster = "default";
  tell_a(peer(9), h);
  tell_a(peer(9), prepare{shoal, far, {1, peer(9)}});
  tell_a(peer(9), accepted{shoal, far, {1, peer(9)}, 1});
  tell_a(peer(9), refused{shoal, far, {1, peer(9)}, {2, peer(9)}});
  BOOST_TEST(sent_by_a<view_request>().empty());
  BOOST_TEST(goes_on());
}

BOOST_AUTO_TEST_CASE(a_far_change_of_a_job_is_not_proposed) {
  job_entry j;
  j.id = 5;
  give(a, submit_job{j});
  run(1000 * ms);
  const view& v = a.core->current();
  BOOST_TEST_REQUIRE(find_job(v, 5) != nullptr);
  for (change_kind kind : {change_kind::retry, change_kind::arrived})
    for (epoch since : {far, v.number + 1000}) {
      change c;
      c.kind = kind;
      c.id = 5;
      c.since = since;
      tell_a(peer(2), change_request{v.shoal, c});
    }
  run(1000 * ms);
  BOOST_TEST(find_job(a.core->current(), 5)->marks.empty());
}

/// `b` cannot decide alone, since the other half has the lowest id. Here it
/// hears a liar in the place of `a`.
struct lied_to_by_a : lied_to {
  lied_to_by_a() {
    linked = false;
    base = b.core->current();
    a_incarnation = find_member(base, peer(1))->id.incarnation;
  }
  void tell_b(message m) { give(b, received{peer(1), std::move(m)}); }

  /// Until `b` asks for promises; heartbeats are answered meanwhile.
  ballot until_b_asks() {
    tell_b(prepare{base.shoal, base.number, {1, peer(1)}}); // no round 0 then
    job_entry j;
    j.id = 12;
    give(b, submit_job{j});
    for (int i = 0; i < 5000; ++i) {
      for (const heartbeat& h : sent_by<heartbeat>(b))
        tell_b(heartbeat_ack{base.shoal, base.number, h.sequence});
      if (const auto asked = sent_by<prepare>(b); !asked.empty())
        return asked.back().ballot;
      b.said.clear();
      run(ms);
    }
    return {};
  }

  view base;
  epoch a_incarnation = 0;
};

// A peer that has seen a round begins above it: one at the end of the range
// would leave no round for any peer.
BOOST_FIXTURE_TEST_CASE(a_far_round_does_not_end_the_ballots, lied_to_by_a) {
  for (std::uint64_t round : {far, far - 1, std::uint64_t{1} << 40}) {
    const ballot high{round, peer(1)};
    b.said.clear();
    tell_b(refused{base.shoal, base.number, {1, peer(2)}, high});
    tell_b(prepare{base.shoal, base.number, high});
    tell_b(accept{base.shoal, base.number, high, base});
    BOOST_TEST(sent_by<promise>(b).empty());
    BOOST_TEST(sent_by<accepted>(b).empty());
  }
  const ballot own = until_b_asks();
  BOOST_TEST(own.round > 1u);
  BOOST_TEST(own.round < 100u);
  // That its ballot is refused for such a round tells it no more.
  tell_b(refused{base.shoal, base.number, own, {far, peer(1)}});
  b.said.clear();
  BOOST_TEST(until_b_asks().round < 200u);
}

// What is taken over from a promise is proposed, and decided: it must be a view
// that can follow ours.
BOOST_AUTO_TEST_CASE(a_promise_of_what_cannot_follow_is_not_taken_over) {
  for (int kind = 0; kind < 6; ++kind) {
    BOOST_TEST_CONTEXT("kind " << kind) {
      lied_to_by_a p;
      const view& base = p.base;
      const ballot own = p.until_b_asks();
      BOOST_TEST_REQUIRE(own.round > 1u);
      promise m{base.shoal,      base.number,  own,
                p.a_incarnation, {1, peer(1)}, base};
      ++m.value->number;
      if (kind == 0)
        m.value->shoal = {99};
      else if (kind == 1)
        m.value->number = base.number;
      else if (kind == 2)
        m.value->number = far;
      else if (kind == 3)
        m.value->members.clear();
      else if (kind == 4)
        m.value->cluster = "another";
      else
        m.accepted = {own.round + 1, peer(1)};
      p.tell_b(m);
      for (const accept& x : p.sent_by<accept>(p.b))
        p.tell_b(accepted{base.shoal, base.number, x.ballot, p.a_incarnation});
      BOOST_TEST(p.b.core->current().number == base.number);
      // The same from an honest peer is adopted.
      m.value = base;
      ++m.value->number;
      m.accepted = {1, peer(1)};
      p.tell_b(m);
      for (const accept& x : p.sent_by<accept>(p.b))
        p.tell_b(accepted{base.shoal, base.number, x.ballot, p.a_incarnation});
      BOOST_TEST(p.b.core->current().number == base.number + 1);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(a_view_that_cannot_follow_gets_no_vote, lied_to_by_a) {
  const ballot first{1, peer(1)};
  accept m{base.shoal, base.number, first, base};
  b.said.clear();
  tell_b(m); // not above its base
  m.value.number = far;
  tell_b(m);
  m.value.number = base.number + 1;
  m.value.shoal = {99};
  tell_b(m);
  BOOST_TEST(sent_by<accepted>(b).empty());
  m.value = base;
  ++m.value.number;
  tell_b(m);
  BOOST_TEST(sent_by<accepted>(b).size() == 1u);
}

// Peers that were made to go there before this was looked at.
BOOST_AUTO_TEST_CASE(at_the_end_of_the_numbers_nothing_overflows) {
  history old = a.disk;
  old.view->current.number = far;
  old.vote.reset();
  a.disk = old;
  begin(a);
  run(5000 * ms);
  give(a, recover_force{});
  job_entry j;
  j.id = 3;
  give(a, submit_job{j});
  run(1000 * ms);
  BOOST_TEST(a.core->current().number == far);
  BOOST_TEST(a.disk.view->current.number == far);
}

BOOST_AUTO_TEST_SUITE_END()
