// tests/runtime/core/cluster/stalls_test.cpp -- a member that was expelled for
// holding up a job comes back after a pause, which grows.
#include "runtime/core/cluster/wishes.hpp"
#include "tests/runtime/core/cluster/cluster_pair.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

namespace cluster_stalls {

using namespace shoal::tests;

namespace {

constexpr nanoseconds s = 1000 * ms;

/// Whether jobs wait for members: one that needs two.
template <bool Waits>
std::vector<assignment> one_job(const view& v) {
  std::vector<assignment> out;
  for (const job_entry& j : v.jobs) {
    out.push_back({j.id, {1, island_place{}}});
    if (!Waits || v.members.size() > 1)
      out.back().islands[0].replicas.resize(1);
  }
  return out;
}

struct stalls : pair_of_nodes {
  void meet() {
    begin(a);
    begin(b);
    link();
    run(300 * ms);
    BOOST_TEST_REQUIRE(together());
  }

  /// `a` finds that `b` holds up a job. @returns when `b` was a member again
  nanoseconds expel_and_wait() {
    const epoch before = a.core->current().number;
    give(a, expel_member{peer(2), before});
    const nanoseconds began = now;
    while (a.core->current().members.size() > 1 && now < began + s)
      run(ms);
    BOOST_TEST_REQUIRE(a.core->current().members.size() == 1u);
    const nanoseconds out = now;
    while (!together() && now < out + 600 * s)
      run(ms);
    BOOST_TEST_REQUIRE(together());
    return now - out;
  }
};

} // namespace

} // namespace cluster_stalls

BOOST_FIXTURE_TEST_SUITE(cluster_stalls, cluster_stalls::stalls)

BOOST_AUTO_TEST_CASE(the_pause_doubles_up_to_a_limit) {
  a.c.stall_pause_max = b.c.stall_pause_max = 16 * s;
  meet();
  for (nanoseconds pause : {2 * s, 4 * s, 8 * s, 16 * s, 16 * s}) {
    const nanoseconds back = expel_and_wait();
    BOOST_TEST(back >= pause);
    BOOST_TEST(back < pause + s);
  }
  BOOST_TEST_REQUIRE(b.core->current().stalled.size() == 1u);
  BOOST_TEST((b.core->current().stalled[0].peer == peer(2)));
  BOOST_TEST(b.core->current().stalled[0].times == 5u);
}

BOOST_AUTO_TEST_CASE(
  a_peer_that_was_well_for_long_begins_with_the_first_pause) {
  a.c.stall_memory = b.c.stall_memory = 30 * s;
  meet();
  expel_and_wait();
  run(20 * s);
  BOOST_TEST(expel_and_wait() >= 4 * s);
  run(31 * s);
  BOOST_TEST(expel_and_wait() < 3 * s);
  BOOST_TEST(expel_and_wait() >= 4 * s);
}

// It is not kept out: only what it did counts.
BOOST_AUTO_TEST_CASE(a_peer_that_dies_after_a_pause_returns_at_once) {
  meet();
  for (int i = 0; i < 4; ++i)
    expel_and_wait();
  linked = false;
  give(b, peer_down{peer(1)});
  give(a, peer_down{peer(2)});
  const nanoseconds began = now;
  while (a.core->current().members.size() > 1 && now < began + 60 * s)
    run(ms);
  begin(b);
  link();
  run(s);
  BOOST_TEST(together());
}

BOOST_AUTO_TEST_CASE(an_expelled_peer_waits_and_founds_no_shoal) {
  meet();
  const shoal_id shoal = a.core->current().shoal;
  for (int i = 0; i < 4; ++i)
    expel_and_wait();
  b.said.clear();
  expel_and_wait(); // 32 s
  std::size_t told = 0;
  for (const action& x : b.said) {
    if (const auto* v = std::get_if<new_view>(&x))
      BOOST_TEST((v->current.shoal == shoal));
    if (const auto* r = std::get_if<rejected>(&x)) {
      ++told;
      BOOST_TEST(r->reason.find("32 s") != std::string::npos);
    }
  }
  BOOST_TEST(told == 1u);
}

BOOST_AUTO_TEST_CASE(a_new_process_of_it_waits_too) {
  meet();
  expel_and_wait();
  give(a, expel_member{peer(2), a.core->current().number});
  run(500 * ms);
  give(a, peer_down{peer(2)});
  begin(b);
  link();
  const nanoseconds began = now;
  while (!together() && now < began + 60 * s)
    run(ms);
  BOOST_TEST(now - began > 3 * s);
  BOOST_TEST(together());
}

BOOST_AUTO_TEST_CASE(the_peer_that_keeps_it_out_may_restart) {
  meet();
  expel_and_wait();
  give(a, expel_member{peer(2), a.core->current().number});
  run(500 * ms);
  BOOST_TEST_REQUIRE(a.core->current().members.size() == 1u);
  give(b, peer_down{peer(1)});
  begin(a);
  link();
  const nanoseconds began = now;
  while (!together() && now < began + 60 * s)
    run(ms);
  BOOST_TEST(now - began >= 4 * s);
  BOOST_TEST(together());
}

BOOST_AUTO_TEST_CASE(a_leaving_or_dying_peer_does_not_wait) {
  meet();
  linked = false;
  give(b, peer_down{peer(1)});
  give(a, peer_down{peer(2)});
  while (a.core->current().members.size() > 1 && now < 60 * s)
    run(ms);
  BOOST_TEST_REQUIRE(a.core->current().members.size() == 1u);
  BOOST_TEST(a.core->current().stalled.empty());
  link();
  run(s);
  BOOST_TEST(together());
}

// Without it nothing would run at all.
BOOST_AUTO_TEST_CASE(if_a_job_waits_for_members_no_peer_stays_out) {
  a.c.plan_jobs = b.c.plan_jobs = one_job<true>;
  meet();
  job_entry j;
  j.id = 3;
  give(a, submit_job{j});
  run(s);
  for (int i = 0; i < 4; ++i)
    BOOST_TEST(expel_and_wait() < s);
}

BOOST_AUTO_TEST_CASE(where_all_jobs_run_on_it_waits) {
  a.c.plan_jobs = b.c.plan_jobs = one_job<false>;
  meet();
  job_entry j;
  j.id = 3;
  give(a, submit_job{j});
  run(s);
  expel_and_wait();
  BOOST_TEST(expel_and_wait() >= 4 * s);
}

// The wish to expel it would hold up all others.
BOOST_AUTO_TEST_CASE(the_only_voter_is_not_expelled) {
  b.c.self.voter = false;
  meet();
  give(b, expel_member{peer(1), b.core->current().number});
  run(s);
  job_entry j;
  j.id = 3;
  give(b, submit_job{j});
  run(s);
  BOOST_TEST(together());
  BOOST_TEST(find_job(a.core->current(), 3) != nullptr);
}

BOOST_AUTO_TEST_CASE(the_view_remembers_a_limited_number) {
  begin(a);
  wishes w;
  view v = a.core->current();
  for (std::size_t i = 0; i < stalled_max + 3; ++i) {
    member m = v.members[0];
    m.id = {peer(std::uint8_t(100 + i)), v.number};
    v.members = {v.members[0], m};
    change c;
    c.kind = change_kind::expel;
    c.subject = m.id;
    c.since = v.number;
    w.changes = {{c, true, 0, 0}};
    auto next = next_view(v, w, nullptr);
    BOOST_TEST_REQUIRE(bool(next));
    v = *next;
  }
  BOOST_TEST(v.stalled.size() == stalled_max);
  BOOST_TEST((v.stalled.back().peer == peer(std::uint8_t(102 + stalled_max))));
}

BOOST_AUTO_TEST_SUITE_END()
