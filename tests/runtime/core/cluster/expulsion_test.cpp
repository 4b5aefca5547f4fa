// tests/runtime/core/cluster/expulsion_test.cpp -- connections of a peer that
// is no longer in the view: when they are closed, and that the peer learns the
// reason.
#include "tests/runtime/core/cluster/cluster_pair.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

namespace cluster_expulsion {

using namespace shoal::tests;

namespace {

struct expulsion : pair_of_nodes {
  expulsion() {
    begin(a);
    begin(b);
    link();
    run(300 * ms);
  }

  /// Has `a` adopt another view: its own after `change`.
  template <class Change>
  void decide(Change change) {
    view v = a.core->current();
    ++v.number;
    change(v);
    a.said.clear();
    give(a, received{b.c.self.id.peer, decided{v}});
    BOOST_TEST_REQUIRE(a.core->current().number == v.number);
  }
  /// A third member, process 5, and the one of that peer that is connected.
  void third_comes(std::uint64_t connected) {
    decide([](view& v) {
      member m = v.members[0];
      m.id = {peer(3), v.number};
      m.instance = 5;
      v.members.push_back(m);
    });
    give(a, peer_up{peer(3), connected});
  }
  void third_leaves() {
    decide([](view& v) { v.members.back().state = member_state::leaving; });
  }
  void third_goes() {
    decide([](view& v) { v.members.pop_back(); });
  }

  /// Where `a` said such a thing to the third, or of it; -1: nowhere.
  template <class Action>
  std::ptrdiff_t said() const {
    const auto at = std::ranges::find_if(a.said, [](const action& x) {
      if constexpr (std::is_same_v<Action, disconnect>) {
        const auto* d = std::get_if<disconnect>(&x);
        return d != nullptr && d->peer == peer(3);
      } else {
        const auto* s = std::get_if<send>(&x);
        return s != nullptr && std::holds_alternative<Action>(s->what)
               && std::ranges::count(s->to, peer(3)) > 0;
      }
    });
    return at == a.said.end() ? -1 : at - a.said.begin();
  }
};

} // namespace

} // namespace cluster_expulsion

BOOST_FIXTURE_TEST_SUITE(cluster_expulsion, cluster_expulsion::expulsion)

BOOST_AUTO_TEST_CASE(an_expelled_peer_is_told_and_then_cut_off) {
  third_comes(5);
  third_goes();
  BOOST_TEST(said<decided>() >= 0);
  BOOST_TEST(said<decided>() < said<disconnect>());
}

BOOST_AUTO_TEST_CASE(a_peer_restarted_meanwhile_keeps_its_connections) {
  third_comes(6);
  third_goes();
  BOOST_TEST(said<disconnect>() == -1);
  BOOST_TEST(said<heartbeat>() >= 0);
}

BOOST_AUTO_TEST_CASE(a_leaver_is_cut_off_only_after_it_knows_that_we_know) {
  third_comes(5);
  third_leaves();
  third_goes();
  BOOST_TEST(said<disconnect>() == -1);
  BOOST_TEST(said<heartbeat>() >= 0);
}

BOOST_AUTO_TEST_CASE(a_leaver_that_falls_silent_is_cut_off) {
  third_comes(5);
  third_leaves();
  while (a.core->current().members.size() > 2 && now < 20'000 * ms)
    run(ms);
  BOOST_TEST(said<disconnect>() >= 0);
}

BOOST_AUTO_TEST_CASE(a_revoked_peer_gets_no_view) {
  third_comes(5);
  decide([](view& v) {
    v.members.pop_back();
    v.revoked.push_back(peer(3));
  });
  BOOST_TEST(said<decided>() == -1);
  BOOST_TEST(said<disconnect>() == -1); // its key is void: the shell sees to it
}

BOOST_AUTO_TEST_CASE(an_expelled_or_leaving_peer_cuts_no_other_off) {
  third_comes(5);
  decide([this](view& v) {
    v.members.pop_back();
    std::erase_if(v.members, [this](const member& m) {
      return m.id.peer == a.c.self.id.peer;
    });
  });
  BOOST_TEST(a.count<disconnect>() == 0u);
  expulsion other;
  other.third_comes(5);
  other.give(other.a, leave{});
  other.third_goes();
  BOOST_TEST(other.a.count<disconnect>() == 0u);
}

BOOST_AUTO_TEST_CASE(a_silent_peer_that_wakes_learns_it_and_returns) {
  const epoch before = a.core->current().number;
  linked = false; // nothing arrives, and no connection ends
  while (a.core->current().members.size() > 1 && now < 20'000 * ms)
    run(ms);
  BOOST_REQUIRE(a.core->current().members.size() == 1u);
  BOOST_TEST(a.count<disconnect>() == 1u);
  give(a, peer_down{b.c.self.id.peer});
  give(b, peer_down{a.c.self.id.peer});
  BOOST_TEST(b.count<connect>() > 0u);
  link();
  run(1000 * ms);
  BOOST_TEST(together());
  BOOST_TEST(a.core->current().members[1].id.incarnation > before);
}

BOOST_AUTO_TEST_SUITE_END()
