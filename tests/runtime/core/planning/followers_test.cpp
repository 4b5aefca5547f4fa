// tests/runtime/core/planning/followers_test.cpp -- members that keep copies of
// a job's state.
#include "runtime/core/planning/followers.hpp"
#include "tests/runtime/core/planning/plan_fixture.hpp"
#include "tests/support/held_parts.hpp"

#include <algorithm>
#include <map>
#include <random>

BOOST_AUTO_TEST_SUITE(followers)

using namespace shoal::core;

namespace {

/// One pipeline over all members.
view pipeline(std::size_t members, std::uint32_t copies) {
  view v = make_view(members);
  v.jobs[0].want_replicas = 1;
  v.jobs[0].want_stages = std::int32_t(members);
  v.jobs[0].want_copies = copies;
  return v;
}

std::uint64_t
state_of(const view& v, const island_place& a, const member_id& m) {
  std::uint64_t bytes = 0;
  for (const std::uint32_t u : held_by(a, m.peer))
    bytes += state_bytes(v.jobs[0], {u, u + 1});
  return bytes;
}

/// Units that a member did not hold before.
std::size_t moved(const island_place& before, const island_place& after) {
  std::size_t n = 0;
  for (const peer_id& p : participants_of(after)) {
    const auto had = held_by(before, p);
    for (const std::uint32_t u : held_by(after, p))
      n += !had.contains(u);
  }
  return n;
}

} // namespace

BOOST_AUTO_TEST_CASE(each_unit_is_in_as_many_places_as_wanted) {
  for (std::uint32_t copies = 0; copies < 6; ++copies) {
    const view v = pipeline(4, copies);
    const island_place a = only(v);
    BOOST_TEST(copies_of(a, v.jobs[0].blocks) == std::min(copies + 1, 4u));
    for (const holder_place& f : a.followers)
      for (const stage_place& s : a.replicas[0].stages)
        if (s.lead() == f.where.member) // no member follows itself
          BOOST_TEST(
            (f.last_unit <= s.first_block + 1 || f.first_unit > s.last_block));
  }
}

BOOST_AUTO_TEST_CASE(replicas_are_copies) {
  view v = make_view(4);
  v.jobs[0].want_replicas = 2;
  v.jobs[0].want_stages = 2;
  v.jobs[0].want_copies = 1;
  BOOST_TEST(only(v).followers.empty());
  v.jobs[0].want_copies = 2;
  const island_place a = only(v);
  BOOST_TEST(copies_of(a, v.jobs[0].blocks) == 3u);
}

BOOST_AUTO_TEST_CASE(a_single_peer_has_no_copies) {
  const island_place a = only(pipeline(1, 1));
  BOOST_TEST(a.followers.empty());
  BOOST_TEST(copies_of(a, 8) == 1u);
}

BOOST_AUTO_TEST_CASE(copies_are_on_other_hosts_where_there_are_some) {
  view v = pipeline(4, 1);
  for (std::size_t i = 0; i < 4; ++i)
    v.members[i].host = i < 2 ? "a" : "b";
  const island_place a = only(v);
  for (const stage_place& s : a.replicas[0].stages)
    for (const holder_place& f : a.followers)
      if (f.first_unit <= s.first_block + 1 && s.first_block + 1 < f.last_unit)
        BOOST_TEST(find_member(v, f.where.member.peer)->host
                   != find_member(v, s.lead().peer)->host);
}

BOOST_AUTO_TEST_CASE(copies_are_spread) {
  const view v = pipeline(4, 1);
  const island_place a = only(v);
  for (const member& m : v.members) {
    const auto mine =
      std::ranges::count(a.followers, seat(m.id), &holder_place::where);
    BOOST_TEST(mine == 1);
  }
}

BOOST_AUTO_TEST_CASE(an_idle_member_follows_first) {
  view v = pipeline(3, 1);
  v.jobs[0].want_stages = 2;
  const island_place a = only(v);
  BOOST_REQUIRE(workers(a).size() == 2u);
  BOOST_REQUIRE(!a.followers.empty());
  BOOST_TEST(!workers(a).contains(a.followers.front().where.member));
  for (const holder_place& f : a.followers)
    BOOST_TEST(
      (std::ranges::find(a.sealers, f.where.member) != a.sealers.end()));
}

BOOST_AUTO_TEST_CASE(a_slow_member_follows_last) {
  view v = pipeline(3, 1);
  v.jobs[0].want_stages = 2;
  v.members[2].device.mflops = 1000;
  const island_place a = only(v);
  for (const holder_place& f : a.followers)
    BOOST_TEST((f.where.member != v.members[2].id));
  BOOST_TEST(copies_of(a, v.jobs[0].blocks) == 2u);
}

BOOST_AUTO_TEST_CASE(copies_use_only_memory_that_is_left) {
  view v = pipeline(2, 1);
  // Half of the model fits on each, and not much more.
  for (member& m : v.members)
    m.device.memory_bytes = 60'000'000;
  const island_place a = only(v);
  BOOST_REQUIRE(!a.replicas.empty());
  BOOST_TEST(a.followers.empty());
  v.members[1].device.memory_bytes = 130'000'000;
  const island_place b = only(v);
  BOOST_TEST(!b.followers.empty());
  for (const member& m : v.members)
    BOOST_TEST(state_of(v, b, m.id) <= m.device.memory_bytes);
}

BOOST_AUTO_TEST_CASE(no_job_waits_for_the_sake_of_copies) {
  view v = pipeline(2, 1);
  for (member& m : v.members)
    m.device.memory_bytes = 120'000'000;
  job_entry second = v.jobs[0];
  second.id = 6;
  second.changed = 3;
  v.jobs.push_back(second);
  const plan p = make_plan(v);
  BOOST_REQUIRE(p.jobs.size() == 2u);
  BOOST_TEST(!p.jobs[0].islands[0].replicas.empty());
  BOOST_TEST(!p.jobs[1].islands[0].replicas.empty()); // 45 of 120 MB each
  BOOST_TEST(
    p.jobs[0].islands[0].followers.empty()); // 30 are left, 45 would be needed
  BOOST_TEST(p.jobs[1].islands[0].followers.empty());
  for (member& m : v.members)
    m.device.memory_bytes = 150'000'000;
  const plan q = make_plan(v);
  BOOST_TEST(!q.jobs[0].islands[0].followers.empty()); // the older job
  BOOST_TEST(q.jobs[1].islands[0].followers.empty());
}

BOOST_AUTO_TEST_CASE(a_plan_that_is_made_again_stays) {
  view v = pipeline(4, 2);
  const island_place a = only(v);
  for (int i = 0; i < 3; ++i) {
    v = next_view(v);
    BOOST_TEST((only(v) == a));
  }
  v.members.push_back(make_member(9)); // idle, but copies do not move
  v = next_view(v);
  BOOST_TEST((only(v).followers == a.followers));
}

/// A follower has the units of a dead member: they run there, or nearby.
BOOST_AUTO_TEST_CASE(little_moves_when_a_member_dies) {
  for (std::size_t dead = 0; dead < 4; ++dead) {
    view v = pipeline(4, 1);
    const island_place a = only(v);
    v = next_view(v);
    v.members.erase(v.members.begin() + long(dead));
    const island_place b = only(v);
    BOOST_REQUIRE(!b.replicas.empty());
    BOOST_TEST(copies_of(b, v.jobs[0].blocks) == 2u);
    // 10 units in 2 places each: 20 holdings, of which 5 or so died.
    BOOST_TEST(moved(a, b) <= 12u);
  }
}

BOOST_AUTO_TEST_CASE(random_shoals_have_the_copies_that_fit) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    auto below = [&](std::uint64_t n) { return random() % n; };
    view v = make_view(1 + below(7), std::uint32_t(2 + below(9)));
    for (member& m : v.members) {
      m.device.memory_bytes = 20'000'000 + below(300) * 1'000'000;
      m.host = std::to_string(below(4));
    }
    v.jobs[0].want_replicas = std::int32_t(below(4)) - 1;
    v.jobs[0].want_stages = std::int32_t(below(4)) - 1;
    if (v.jobs[0].want_replicas == 0 || v.jobs[0].want_stages == 0)
      v.jobs[0].want_replicas = v.jobs[0].want_stages = -1;
    v.jobs[0].want_copies = std::uint32_t(below(4));
    for (int turn = 0; turn < 3; ++turn) {
      const island_place a = only(v);
      if (a.replicas.empty())
        break;
      std::map<member_id, std::uint64_t> used;
      for (const auto& need : predict(v, a).members)
        used[need.where] = need.bytes;
      for (const member& m : v.members)
        BOOST_TEST(used[m.id] <= m.device.memory_bytes);
      for (std::size_t f = 0; f < a.followers.size(); ++f)
        for (std::size_t g = f + 1; g < a.followers.size(); ++g)
          BOOST_TEST(
            (a.followers[f].where.member != a.followers[g].where.member
             || a.followers[f].last_unit <= a.followers[g].first_unit
             || a.followers[g].last_unit <= a.followers[f].first_unit));
      v = next_view(v);
      if (v.members.size() > 1)
        v.members.erase(v.members.begin() + long(below(v.members.size())));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
