// tests/runtime/core/planning/plan_stages_test.cpp -- a job that asks for N
// stages has them on N members, where as many have room for one.
#include "runtime/core/planning/plan_reasons.hpp"
#include "tests/runtime/core/planning/plan_fixture.hpp"

#include <algorithm>

namespace shoal::core {
BOOST_AUTO_TEST_SUITE(plan_stages)

namespace {

/// Members of the replica that has fewest.
std::size_t fewest_members(const island_place& a) {
  std::size_t fewest = ~std::size_t{0};
  for (const replica_place& r : a.replicas) {
    std::set<member_id> distinct;
    for (const stage_place& s : r.stages)
      distinct.insert(s.lead());
    fewest = std::min(fewest, distinct.size());
  }
  return a.replicas.empty() ? 0 : fewest;
}

view wanting(std::int32_t stages, std::size_t members) {
  view v = make_view(members);
  v.jobs[0].want_stages = stages;
  return v;
}

std::string unheld(const view& v) {
  std::string out;
  for (const unheld_wish& w : unheld_wishes(v, only(v)))
    out += to_text(w) + "\n";
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(stages_are_on_members_of_their_own) {
  for (std::int32_t stages = 1; stages <= 6; ++stages)
    for (std::size_t members = std::size_t(stages); members <= 9; ++members)
      for (std::uint32_t microbatches : {1u, 8u, 64u}) {
        view v = wanting(stages, members);
        v.jobs[0].microbatches = microbatches;
        const island_place a = only(v);
        BOOST_TEST_CONTEXT(stages << " stages, " << members << " members, "
                                  << microbatches << " microbatches") {
          for (const replica_place& r : a.replicas)
            BOOST_TEST(r.stages.size() == std::size_t(stages));
          BOOST_TEST(fewest_members(a) == std::size_t(stages));
          BOOST_TEST(unheld(v).empty(), unheld(v));
        }
      }
}

BOOST_AUTO_TEST_CASE(a_slow_peer_or_link_is_no_reason_to_share) {
  view v = wanting(2, 2);
  v.members[1].device.mflops = 1'000;
  for (member& m : v.members)
    m.networks = {{"modem", 300'000'000, 7'000}};
  BOOST_TEST(fewest_members(only(v)) == 2u);
}

BOOST_AUTO_TEST_CASE(a_member_without_room_takes_no_stage) {
  view v = wanting(2, 5);
  for (std::size_t i : {0, 1, 3})
    v.members[i].device.memory_bytes = 1'000'000;
  const island_place a = only(v);
  BOOST_TEST(fewest_members(a) == 2u);
  BOOST_TEST(workers(a).contains(v.members[2].id));
  BOOST_TEST(workers(a).contains(v.members[4].id));
  v.members[2].device.memory_bytes = 1'000'000;
  const island_place shared = only(v);
  BOOST_TEST(fewest_members(shared) == 1u); // better than none
  BOOST_TEST(unheld(v)
             == "pipeline_parallel_degree = 2: all stages of a replica on 1 "
                "peer, as no other peers have the memory for a stage\n");
}

BOOST_AUTO_TEST_CASE(of_wanted_replicas_too) {
  view v = wanting(2, 4);
  v.jobs[0].want_replicas = 2;
  for (std::size_t i : {0, 1, 3})
    v.members[i].device.memory_bytes = 1'000'000;
  const island_place a = only(v); // it runs, with what there is
  BOOST_TEST(a.replicas.size() == 1u);
  BOOST_TEST(fewest_members(a) == 1u);
}

BOOST_AUTO_TEST_CASE(a_joiner_takes_one_of_the_shared_stages) {
  view v = wanting(2, 1);
  BOOST_TEST(fewest_members(only(v)) == 1u);
  view w = next_view(v);
  w.members.push_back(make_member(2, 10'000)); // slower: no gain in time
  BOOST_TEST(fewest_members(only(w)) == 2u);
  view x = next_view(w);
  x.members[0].device.mflops *= 50; // nor is it dropped for a faster one
  BOOST_TEST(fewest_members(only(x)) == 2u);
}

BOOST_AUTO_TEST_CASE(a_death_is_survived_and_the_place_filled_again) {
  view v = wanting(2, 2);
  view w = next_view(v);
  w.members.pop_back();
  BOOST_TEST(fewest_members(only(w)) == 1u);
  view x = next_view(w);
  x.members.push_back(make_member(7));
  BOOST_TEST(fewest_members(only(x)) == 2u);
}

BOOST_AUTO_TEST_CASE(an_idle_peer_gets_the_reason) {
  view v = wanting(2, 3);
  const island_place a = only(v);
  const auto idle = idle_members(v, a);
  BOOST_REQUIRE(idle.size() == 1u);
  BOOST_TEST(idle[0].why
             == "another replica would need 2 peers for its stages");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::core
