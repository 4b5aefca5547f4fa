// tests/runtime/core/cluster/stalled_members_test.cpp -- pauses of members that
// held up a job.
#include "runtime/core/cluster/local/stalled_members.hpp"
#include "tests/runtime/core/cluster/cluster_local.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(cluster_stalled_members)

using namespace shoal::tests;

namespace {

const stall_pauses pauses{10, 35, 1000};

view with(std::vector<std::uint8_t> members,
          std::vector<stalled_peer> stalled) {
  view v;
  for (std::uint8_t n : members)
    v.members.emplace_back().id.peer = peer(n);
  v.stalled = std::move(stalled);
  v.jobs.emplace_back().id = 1;
  return v;
}

std::vector<assignment> a_job_waits(const view&) {
  return {{1, {1, island_place{}}}};
}

} // namespace

BOOST_AUTO_TEST_CASE(the_pause_doubles_up_to_the_longest) {
  stalled_members s(pauses, nullptr);
  const view v = with({1}, {{peer(2), 1, 5}, {peer(3), 2, 5}, {peer(4), 9, 5}});
  BOOST_TEST(s.pause_of(v, peer(1)) == 0);
  BOOST_TEST(s.pause_of(v, peer(2)) == 10);
  BOOST_TEST(s.pause_of(v, peer(3)) == 20);
  BOOST_TEST(s.pause_of(v, peer(4)) == 35);
}

BOOST_AUTO_TEST_CASE(one_expulsion_begins_one_pause) {
  stalled_members s(pauses, nullptr);
  const view out = with({1}, {{peer(2), 1, 5}});
  BOOST_TEST((s.follow(out, 100) == std::vector{peer(2)}));
  BOOST_TEST(s.follow(out, 105).empty());
  BOOST_TEST(s.stays_out(peer(2), 109));
  BOOST_TEST(!s.stays_out(peer(2), 110));
  BOOST_TEST(!s.stays_out(peer(1), 105));
  const view again = with({1}, {{peer(2), 2, 6}});
  BOOST_TEST((s.follow(again, 200) == std::vector{peer(2)}));
  BOOST_TEST(s.stays_out(peer(2), 219));
}

BOOST_AUTO_TEST_CASE(a_member_that_is_back_does_not_begin_a_pause) {
  stalled_members s(pauses, nullptr);
  BOOST_TEST(s.follow(with({1, 2}, {{peer(2), 1, 5}}), 100).empty());
  BOOST_TEST(!s.stays_out(peer(2), 100));
}

BOOST_AUTO_TEST_CASE(a_peer_is_well_after_the_memory_and_not_while_it_is_out) {
  stalled_members s(pauses, nullptr);
  s.follow(with({1}, {{peer(2), 1, 5}}), 100);
  BOOST_TEST(!s.was_well(peer(2), 5000));
  s.follow(with({1, 2}, {{peer(2), 1, 5}}), 200);
  s.follow(with({1, 2}, {{peer(2), 1, 5}}), 700);
  BOOST_TEST(!s.was_well(peer(2), 1199));
  BOOST_TEST(s.was_well(peer(2), 1200));
  BOOST_TEST(!s.was_well(peer(3), 5000));
}

BOOST_AUTO_TEST_CASE(no_peer_stays_out_if_a_job_waits_for_members) {
  stalled_members s(pauses, a_job_waits);
  view v = with({1}, {{peer(2), 1, 5}});
  s.follow(v, 100);
  BOOST_TEST(!s.stays_out(peer(2), 105));
  v.jobs.front().state = job_state::done;
  s.follow(v, 105);
  BOOST_TEST(s.stays_out(peer(2), 105));
}

BOOST_AUTO_TEST_CASE(a_peer_that_the_view_counts_no_more_is_forgotten) {
  stalled_members s(pauses, nullptr);
  s.follow(with({1}, {{peer(2), 1, 5}}), 100);
  s.follow(with({1}, {}), 101);
  BOOST_TEST(!s.stays_out(peer(2), 105));
}

BOOST_AUTO_TEST_SUITE_END()
