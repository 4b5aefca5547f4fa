// tests/runtime/core/planning/islands_test.cpp -- jobs of several islands.
#include "runtime/core/planning/island_members.hpp"
#include "tests/runtime/core/planning/plan_fixture.hpp"

#include <algorithm>
#include <set>

namespace shoal::core {
BOOST_AUTO_TEST_SUITE(islands)

namespace {

view with_islands(std::size_t members, std::uint32_t islands) {
  view v = make_view(members);
  v.jobs[0].want_islands = islands;
  v.jobs[0].want_copies = 1;
  return v;
}

assignment islands_of(const view& v) {
  return make_plan(v).jobs.at(0);
}

/// All members that have any part in the island.
std::set<member_id> all_in(const island_place& at) {
  std::set<member_id> out = workers(at);
  for (const auto* places : {&at.followers, &at.arriving})
    for (const holder_place& f : *places)
      out.insert(f.where.member);
  for (const auto* list : {&at.keepers, &at.sealers})
    out.insert(list->begin(), list->end());
  return out;
}

view without(view v, const member_id& gone) {
  std::erase_if(v.members, [&](const member& m) { return m.id == gone; });
  return v;
}

} // namespace

BOOST_AUTO_TEST_CASE(no_member_has_a_part_in_two_islands) {
  for (std::size_t members = 2; members <= 9; ++members)
    for (std::uint32_t islands = 2; islands <= 3; ++islands)
      BOOST_TEST_CONTEXT(members << " members, " << islands << " islands") {
        const assignment a = islands_of(with_islands(members, islands));
        BOOST_TEST_REQUIRE(a.islands.size() == islands);
        std::set<member_id> all;
        std::size_t sum = 0;
        for (const island_place& at : a.islands) {
          const auto in = all_in(at);
          sum += in.size();
          all.insert(in.begin(), in.end());
          BOOST_TEST(at.replicas.empty() == (members < islands && in.empty()));
        }
        BOOST_TEST(sum == all.size());
      }
}

BOOST_AUTO_TEST_CASE(speed_is_dealt_out_evenly) {
  view v = with_islands(4, 2);
  v.members[0].device.mflops = 300'000; // as much as the three others
  const auto members = members_by_island(v, v.jobs[0], nullptr);
  BOOST_TEST(members[0].size() == 1u);
  BOOST_TEST(members[1].size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_death_changes_the_place_of_its_island_only) {
  for (std::size_t members = 4; members <= 8; ++members) {
    const view v = with_islands(members, 2);
    const assignment before = islands_of(v);
    for (std::uint32_t dead = 0; dead < 2; ++dead)
      for (const member_id& gone : workers(before.islands[dead])) {
        const assignment after = islands_of(without(next_view(v), gone));
        const std::uint32_t other = 1 - dead;
        BOOST_TEST((after.islands[other] == before.islands[other]));
        BOOST_TEST(after.islands[dead].since == v.number + 1);
        BOOST_TEST(!all_in(after.islands[dead]).contains(gone));
      }
  }
}

BOOST_AUTO_TEST_CASE(a_joiner_changes_one_island_only) {
  const view v = with_islands(5, 2);
  const assignment before = islands_of(v);
  view w = next_view(v);
  w.members.push_back(make_member(77));
  w.members.back().id.incarnation = w.number;
  const assignment after = islands_of(w);
  BOOST_TEST(((after.islands[0] == before.islands[0])
              != (after.islands[1] == before.islands[1])));
}

BOOST_AUTO_TEST_CASE(marks_are_of_one_island) {
  const view v = with_islands(4, 2);
  const assignment before = islands_of(v);
  view w = next_view(v);
  set_mark(w.jobs[0], {mark_kind::retried, 1, before.islands[1].since, 0});
  const assignment after = islands_of(w);
  BOOST_TEST((after.islands[0] == before.islands[0]));
  BOOST_TEST(after.islands[1].since == w.number);
}

BOOST_AUTO_TEST_CASE(an_island_without_members_waits) {
  const assignment a = islands_of(with_islands(2, 3));
  BOOST_TEST(!waits(a));
  const auto waiting =
    std::ranges::count_if(a.islands, [](const island_place& at) {
      return at.replicas.empty() && !at.why_waiting.empty();
    });
  BOOST_TEST(waiting == 1);
}

BOOST_AUTO_TEST_CASE(two_islands_never_have_the_same_digest) {
  const assignment a = islands_of(with_islands(4, 2));
  BOOST_TEST(digest({5, 0}, a.islands[0]) != digest({5, 1}, a.islands[1]));
  BOOST_TEST(digest({5, 0}, a.islands[0]) != digest({5, 1}, a.islands[0]));
}

BOOST_AUTO_TEST_CASE(a_plan_of_islands_is_told_in_words) {
  const view v = with_islands(4, 2);
  const std::string text = to_text(v, islands_of(v));
  BOOST_TEST(text.find("island 0: ") == 0u);
  BOOST_TEST(text.find("; island 1: ") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::core
