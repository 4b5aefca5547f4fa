// tests/runtime/core/cluster/copies_test.cpp -- a peer that comes back with its
// records, or another process with a copy of them.
#include "tests/runtime/core/cluster/cluster_pair.hpp"

#include <boost/test/unit_test.hpp>

namespace cluster_copies {

using namespace shoal::tests;

} // namespace cluster_copies

BOOST_FIXTURE_TEST_SUITE(cluster_copies, cluster_copies::pair_of_nodes)

BOOST_AUTO_TEST_CASE(a_copy_of_a_peer_decides_nothing_while_it_is_doubted) {
  begin(a);
  begin(b);
  link();
  run(300 * ms);
  BOOST_REQUIRE(together());
  const view last = a.core->current();
  linked = false;
  give(a, peer_down{b.c.self.id.peer}); // the process goes, its disk is copied
  begin(a);
  run(200 * ms); // b was dialled and has not answered
  BOOST_TEST((a.core->phase() == phase::waiting));
  for (int i = 0; i < 3; ++i) {
    give(a, doubted{});
    give(a, connect_failed{b.c.self.addresses[0]});
    run(1000 * ms);
    BOOST_TEST((a.core->phase() == phase::waiting));
  }
  BOOST_TEST((a.core->current() == last));
  BOOST_TEST(a.count<waiting_for>() == 0u); // no peer may force a second shoal
  give(a, doubted{});
  give(a, recover_force{});
  BOOST_TEST(a.count<rejected>() == 1u);
  BOOST_TEST((a.core->current() == last));
  run(3000 * ms); // no peer reports it any more: it was the old process
  BOOST_TEST((a.core->phase() == phase::member));
  BOOST_TEST(a.core->current().number > last.number);
}

BOOST_AUTO_TEST_CASE(a_peer_that_returns_alone_waits_only_for_its_first_dials) {
  begin(a);
  begin(b);
  link();
  run(300 * ms);
  BOOST_REQUIRE(together());
  linked = false;
  b.core.reset();
  begin(a);
  BOOST_TEST((a.core->phase() == phase::waiting));
  give(a, connect_failed{b.c.self.addresses[0]});
  run(100 * ms);
  BOOST_TEST((a.core->phase() == phase::member));
  begin(a); // and where dials end in silence
  run(a.c.suspect_floor + 100 * ms);
  BOOST_TEST((a.core->phase() == phase::member));
}

BOOST_AUTO_TEST_SUITE_END()
