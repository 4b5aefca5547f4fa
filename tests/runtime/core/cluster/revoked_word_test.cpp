// tests/runtime/core/cluster/revoked_word_test.cpp -- an address that calls
// this peer revoked: it may be revoked itself.
#include "tests/runtime/core/cluster/cluster_pair.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

namespace cluster_revoked_word {

using namespace shoal::tests;

namespace {

constexpr nanoseconds s = 1000 * ms;

/// `a` and `b`, and a third member that sends a message to peers that dial it.
struct revoked_word : pair_of_nodes {
  const std::string liar = "liar:1";

  /// Both come back with a view of three; `liar` answers in the third's place.
  void come_back() {
    begin(a);
    begin(b);
    link();
    run(300 * ms);
    view v = a.core->current();
    ++v.number;
    member m = v.members[0];
    m.id = {peer(3), v.number};
    m.instance = 5;
    m.addresses = {liar};
    v.members.push_back(m);
    give(a, received{peer(2), decided{v}});
    give(b, received{peer(1), decided{v}});
    linked = false;
    wire.clear();
    begin(a);
    begin(b);
  }

  /// The transport's reports about each dial of `n` to the liar.
  void answer_dials(node& n) {
    for (std::size_t i = 0; i < n.said.size(); ++i)
      if (const auto* c = std::get_if<connect>(&n.said[i]);
          c != nullptr && c->address == liar) {
        n.said.erase(n.said.begin() + std::ptrdiff_t(i));
        ++dials;
        give(n, turned_away{liar});
        give(n, connect_failed{liar});
        i = 0;
      }
  }
  void run_with_liar(nanoseconds time) {
    for (const nanoseconds end = now + time; now < end;) {
      run(ms);
      for (node* n : {&a, &b})
        answer_dials(*n);
    }
  }
  bool waits_for_end() const { return a.core->phase() != phase::gone; }

  int dials = 0;
};

} // namespace

} // namespace cluster_revoked_word

BOOST_FIXTURE_TEST_SUITE(cluster_revoked_word,
                         cluster_revoked_word::revoked_word)

BOOST_AUTO_TEST_CASE(one_word_bars_that_address_alone) {
  come_back();
  run_with_liar(3 * s);
  BOOST_TEST(dials == 2); // once by each
  BOOST_TEST(a.count<shut_out>() == 0u);
  link();
  run_with_liar(30 * s);
  BOOST_TEST(a.count<shut_out>() + b.count<shut_out>() == 0u);
  BOOST_TEST((a.core->phase() == phase::member));
  BOOST_TEST((a.core->current() == b.core->current()));
}

BOOST_AUTO_TEST_CASE(a_peer_that_is_never_admitted_ends_with_its_own_message) {
  come_back();
  const nanoseconds began = now;
  while (a.core->phase() != phase::gone && now < began + 60 * s)
    run_with_liar(ms);
  BOOST_TEST(a.count<shut_out>() == 1u);
  BOOST_TEST(now - began >= a.c.shut_out_patience);
  BOOST_TEST(now - began < a.c.shut_out_patience + s);
}

// A contact that admits nobody is no proof: it may be revoked, too.
BOOST_AUTO_TEST_CASE(a_stranger_in_contact_only_puts_the_end_off) {
  come_back();
  run_with_liar(2 * s);
  give(a, peer_up{peer(9), 77});
  run_with_liar(30 * s);
  BOOST_TEST(a.count<shut_out>() == 0u);
  give(a, peer_down{peer(9)});
  run_with_liar(a.c.shut_out_patience - s);
  BOOST_TEST(a.count<shut_out>() == 0u);
  run_with_liar(2 * s);
  BOOST_TEST(a.count<shut_out>() == 1u);
}

BOOST_AUTO_TEST_CASE(another_view_is_another_chance) {
  come_back();
  link();
  run_with_liar(s);
  const int before = dials;
  job_entry j;
  j.id = 9;
  give(a, submit_job{j});
  run_with_liar(30 * s);
  BOOST_TEST(dials > before);
  BOOST_TEST(dials < before + 40); // as many as there were views, not for ever
  BOOST_TEST(a.count<shut_out>() == 0u);
}

// A shoal of one needs no other peer: its job would die by a stranger's
// message.
BOOST_AUTO_TEST_CASE(a_peer_on_its_own_is_not_ended) {
  begin(a);
  give(a, discovered{liar});
  answer_dials(a);
  BOOST_TEST(dials == 1);
  for (int i = 0; i < 20; ++i) {
    give(a, discovered{liar});
    run_with_liar(s);
  }
  BOOST_TEST(dials == 1);
  BOOST_TEST(a.count<shut_out>() == 0u);
  BOOST_TEST((a.core->phase() == phase::member));
}

BOOST_AUTO_TEST_CASE(a_peer_in_no_shoal_ends_and_founds_none_before) {
  come_back();
  view v = a.core->current();
  ++v.number;
  std::erase_if(v.members,
                [](const member& m) { return m.id.peer == peer(1); });
  give(a, peer_up{peer(2), b.c.self.instance});
  give(a, received{peer(2), decided{v}}); // expelled
  give(a, peer_down{peer(2)});
  BOOST_TEST_REQUIRE((a.core->phase() == phase::homeless));
  run_with_liar(10 * s);
  BOOST_TEST(a.count<shut_out>() == 1u);
  BOOST_TEST((a.core->current().shoal == v.shoal));
}

BOOST_AUTO_TEST_SUITE_END()
