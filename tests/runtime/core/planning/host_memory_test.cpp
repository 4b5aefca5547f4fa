// tests/runtime/core/planning/host_memory_test.cpp -- a host's memory is
// promised once.
#include "runtime/core/planning/host_memory.hpp"
#include "tests/runtime/core/planning/plan_fixture.hpp"

#include <numeric>

namespace shoal::core {
BOOST_AUTO_TEST_SUITE(host_memory)

namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

/// `count` peers of one host with 24 GiB, each with half of the free memory.
view on_one_host(std::size_t count) {
  view v = make_view(count);
  for (member& m : v.members) {
    m.host = "h";
    m.device.memory_bytes = 10 * gib;
    m.device.host_memory_bytes = 24 * gib;
    m.device.memory_is_share = true;
  }
  return v;
}

std::uint64_t sum(const memory_by_peer& memory) {
  return std::accumulate(
    memory.begin(), memory.end(), std::uint64_t{0},
    [](std::uint64_t s, const auto& of) { return s + of.second; });
}

} // namespace

BOOST_AUTO_TEST_CASE(peers_without_chosen_memory_share_one_promise) {
  for (std::size_t count : {1, 2, 3, 7}) {
    const view v = on_one_host(count);
    const memory_by_peer memory = memory_for_jobs(v, {});
    BOOST_TEST(memory.size() == count);
    BOOST_TEST(sum(memory) <= 10 * gib);
    BOOST_TEST(sum(memory) > 10 * gib - count);
  }
}

BOOST_AUTO_TEST_CASE(a_run_beyond_the_host_is_not_planned) {
  view v = on_one_host(3);
  job_entry& j = v.jobs.front();
  j.block_state_bytes = 2 * gib; // 16 GiB in all: more than one promise
  const island_place waits = only(v);
  BOOST_TEST(waits.replicas.empty());
  BOOST_TEST(waits.why_waiting.find("has 10.0 GiB") != std::string::npos,
             waits.why_waiting);
  BOOST_TEST(waits.why_waiting.find("share its memory") != std::string::npos);
  BOOST_TEST(!never_fits(v, j).empty());
  for (member& m : v.members)
    m.host = m.id.peer[0] == 1 ? "a" : m.id.peer[0] == 2 ? "b" : "c";
  BOOST_TEST(!only(v).replicas.empty()); // three hosts have it
}

BOOST_AUTO_TEST_CASE(chosen_memory_is_at_most_what_the_host_has) {
  view v = on_one_host(3);
  for (member& m : v.members)
    m.device.memory_is_share = false;
  v.members[0].device.memory_bytes = 20 * gib;
  v.members[1].device.memory_bytes = 4 * gib;
  v.members[2].device.memory_bytes = 24 * gib;
  const memory_by_peer memory = memory_for_jobs(v, {});
  BOOST_TEST(memory.at(v.members[0].id.peer) == 10 * gib);
  BOOST_TEST(memory.at(v.members[1].id.peer) == 2 * gib);
  BOOST_TEST(memory.at(v.members[2].id.peer) == 12 * gib);
  v.members[2].device.memory_bytes = 0; // a chosen amount stays if it fits
  BOOST_TEST(memory_for_jobs(v, {}).at(v.members[0].id.peer) == 20 * gib);
  for (member& m : v.members) // nor if the host is unknown
    m.device = make_member(1, 100'000, 20 * gib).device;
  BOOST_TEST(sum(memory_for_jobs(v, {})) == 60 * gib);
}

BOOST_AUTO_TEST_CASE(shares_are_what_chosen_memory_leaves) {
  view v = on_one_host(3);
  v.members[0].device.memory_is_share = false;
  v.members[0].device.memory_bytes = 20 * gib;
  const memory_by_peer memory = memory_for_jobs(v, {});
  BOOST_TEST(memory.at(v.members[0].id.peer) == 20 * gib);
  BOOST_TEST(memory.at(v.members[1].id.peer) == 2 * gib);
  BOOST_TEST(memory.at(v.members[2].id.peer) == 2 * gib);
}

// Else a node that is started beside one that trains would end the job.
BOOST_AUTO_TEST_CASE(a_peer_that_joins_takes_no_memory_from_under_a_job) {
  view v = on_one_host(1);
  job_entry& j = v.jobs.front();
  j.blocks = 1; // cannot be cut
  j.block_state_bytes = 8 * gib;
  const island_place before = only(v);
  BOOST_REQUIRE(!before.replicas.empty());
  v = next_view(v);
  v.members.push_back(on_one_host(2).members[1]);
  const memory_by_peer memory = memory_for_jobs(v, v.previous);
  BOOST_TEST(memory.at(v.members[0].id.peer) >= 8 * gib);
  BOOST_TEST(sum(memory) <= 10 * gib);
  BOOST_TEST((only(v).replicas == before.replicas));
  // Without a job all is divided again.
  BOOST_TEST(memory_for_jobs(v, {}).at(v.members[1].id.peer) == 5 * gib);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::core
