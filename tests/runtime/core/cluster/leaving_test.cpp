// tests/runtime/core/cluster/leaving_test.cpp -- a peer that missed the end of
// its shoal learns of it, even if all peers that saw it are gone.
#include "tests/runtime/core/cluster/cluster_three.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <vector>

namespace cluster_leaving {

using namespace shoal::tests;

namespace {

/// One of three ends, and misses what becomes of its shoal.
struct missed_end : three_nodes {
  /// a and b are a shoal; b ends, and misses that a goes over to c's.
  /// @returns c's shoal
  shoal_id lose_sight_of_the_end() {
    begin(a);
    begin(b);
    link(a, b);
    run(300 * ms);
    BOOST_REQUIRE(a.core->current() == b.core->current());
    stop(b);
    run(2000 * ms);
    begin(c);
    job_entry j;
    j.id = 9;
    give(c, submit_job{j});
    const shoal_id kept = c.core->current().shoal;
    link(a, c);
    run(2000 * ms);
    BOOST_REQUIRE(in(a, kept));
    return kept;
  }

  void require_b_comes(const shoal_id& kept) {
    begin(b);
    BOOST_REQUIRE((b.core->phase() == phase::waiting)); // for a
    link(b, c);
    run(5000 * ms);
    BOOST_TEST(in(b, kept));
  }
};

} // namespace

} // namespace cluster_leaving

BOOST_FIXTURE_TEST_SUITE(cluster_leaving, cluster_leaving::missed_end)

BOOST_AUTO_TEST_CASE(a_leaver_passes_on_what_others_missed) {
  const shoal_id kept = lose_sight_of_the_end();
  give(a, leave_now{});
  run(1000 * ms);
  BOOST_REQUIRE(a.count<left>() == 1u);
  BOOST_TEST(a.erased);
  stop(a);
  require_b_comes(kept);
}

BOOST_AUTO_TEST_CASE(a_dead_peer_has_passed_on_what_others_missed) {
  const shoal_id kept = lose_sight_of_the_end();
  run(20'000 * ms);
  stop(a);
  run(2000 * ms);
  BOOST_REQUIRE(c.core->current().members.size() == 1u);
  require_b_comes(kept);
}

BOOST_AUTO_TEST_CASE(received_news_is_passed_on_again) {
  const shoal_id kept = lose_sight_of_the_end();
  give(a, leave_now{});
  run(1000 * ms);
  stop(a);
  a.disk = {};
  // Another a, which has never heard of b: c tells it, and leaves.
  begin(a);
  link(a, c);
  run(2000 * ms);
  BOOST_REQUIRE(in(a, kept));
  give(c, leave_now{});
  run(1000 * ms);
  BOOST_REQUIRE(c.count<left>() == 1u);
  stop(c);
  begin(b);
  link(a, b);
  run(5000 * ms);
  BOOST_TEST(in(b, kept));
}

// a's word makes the view that b has asked for, and b does not hear it: it would
// wait for a for ever, which has been admitted elsewhere.
BOOST_AUTO_TEST_CASE(a_peer_that_was_sent_away_tells_the_shoal_to_go_on) {
  begin(a);
  begin(b);
  link(a, b);
  run(300 * ms);
  BOOST_REQUIRE(a.core->current() == b.core->current());
  const history before = b.disk;
  view without = b.core->current();
  ++without.number;
  std::erase_if(without.members,
                [&](const member& m) { return m.id.peer == peer(2); });
  give(a, received{peer(3), decided{without}});
  BOOST_REQUIRE(!a.core->seated());
  stop(b);
  begin(c);
  job_entry j;
  j.id = 9;
  give(c, submit_job{j});
  link(a, c);
  run(5000 * ms);
  const shoal_id other = c.core->current().shoal;
  BOOST_REQUIRE(in(a, other));
  b.disk = before;
  begin(b);
  link(a, b);
  run(20'000 * ms);
  BOOST_TEST(in(b, other));
}

BOOST_AUTO_TEST_CASE(a_peer_in_no_shoal_keeps_what_only_it_knows) {
  const shoal_id kept = lose_sight_of_the_end();
  // c is gone before a has told it, and a leaves without any shoal.
  stop(c);
  c.disk = {};
  a.disk.view->seated = false;
  a.disk.view->current = a.disk.view->former.back();
  stop(a);
  begin(a);
  give(a, leave_now{});
  BOOST_REQUIRE(a.count<left>() == 1u);
  BOOST_TEST(!a.erased);
  stop(a);
  begin(a);
  begin(b);
  link(a, b);
  run(10'000 * ms);
  BOOST_TEST((a.core->current() == b.core->current()));
  BOOST_TEST(a.core->current().members.size() == 2u);
  BOOST_TEST((a.core->current().shoal != kept));
}

BOOST_AUTO_TEST_CASE(nothing_is_handed_on_that_all_have_seen) {
  begin(a);
  begin(b);
  link(a, b);
  run(300 * ms);
  begin(c);
  job_entry j;
  j.id = 9;
  give(c, submit_job{j});
  link(a, c);
  link(b, c);
  run(20'000 * ms);
  BOOST_REQUIRE(c.core->current().members.size() == 3u);
  BOOST_TEST(c.disk.view->former.empty());
  give(a, leave_now{});
  run(1000 * ms);
  BOOST_TEST(a.erased);
  BOOST_TEST(c.disk.view->former.empty());
}

/// A peer that has its quorum knows better than a stranger.
BOOST_AUTO_TEST_CASE(a_stranger_ends_no_shoal_that_has_its_quorum) {
  begin(a);
  begin(b);
  link(a, b);
  run(300 * ms);
  view ended = a.core->current();
  ended.number += 1;
  ended.dissolved_into = shoal_id{};
  const peer_id stranger = peer(9);
  give(b, peer_up{stranger, 1});
  give(b, received{stranger, decided{ended}});
  BOOST_TEST(b.core->seated());
  stop(a);
  run(2000 * ms);
  BOOST_REQUIRE((b.core->phase() == phase::waiting));
  give(b, received{stranger, decided{ended}});
  BOOST_TEST(!b.core->seated());
}

BOOST_AUTO_TEST_SUITE_END()
