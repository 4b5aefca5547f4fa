// tests/actors/islands_test.cpp -- a training job of two islands that exchange
// nothing: what happens in one does not reach the other.
#include "runtime/core/planning/plan.hpp"
#include "tests/actors/job_fixture.hpp"
#include "tests/support/held_parts.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <set>

BOOST_AUTO_TEST_SUITE(islands)

namespace bdata = boost::unit_test::data;
using namespace shoal;
using namespace shoal::test;

namespace {

/// Four peers, two islands of one replica of two stages, with copies.
struct two_islands : small_shoal {
  two_islands() : small_shoal(4, small_run(1, 2), some_text()) {
    entry().want_islands = 2;
    submit();
  }

  const core::island_place& place(std::uint32_t island) const {
    return plan().jobs.at(0).islands.at(island);
  }
  /// Numbers of the nodes that work for the island.
  std::set<std::size_t> nodes_of(std::uint32_t island) const {
    std::set<std::size_t> out;
    for (const core::peer_id& p : core::participants_of(place(island)))
      out.insert(p[0] - 1u);
    return out;
  }
};

std::size_t count(const small_shoal::traffic& t, const char* kind) {
  for (std::size_t i = 0; i < std::size(core::job_message_names); ++i)
    if (std::string(core::job_message_names[i]) == kind) {
      const auto at = t.messages.find(i);
      return at == t.messages.end() ? 0 : at->second;
    }
  BOOST_FAIL("no such message");
  return 0;
}

} // namespace

BOOST_AUTO_TEST_CASE(each_island_trains_by_itself_on_its_own_samples) {
  two_islands s;
  const std::set<std::size_t> nodes[] = {s.nodes_of(0), s.nodes_of(1)};
  BOOST_TEST(nodes[0].size() == 2u);
  BOOST_TEST(nodes[1].size() == 2u);
  BOOST_REQUIRE(s.finish());
  for (std::uint32_t island = 0; island < 2; ++island)
    for (std::size_t node = 0; node < 4; ++node) { // also those of the other
      const run_record r = s.record(node, island);
      BOOST_TEST(r.losses.size() == std::size_t(steps));
      BOOST_TEST(r.state == "done");
      BOOST_TEST(r.checkpoints == 3u);
    }
  // The first island is the run that one peer would make.
  require_same(s.record(0, 0), true, false);
  BOOST_TEST(s.record(0, 1).losses != s.record(0, 0).losses);
  for (std::uint32_t island = 0; island < 2; ++island)
    for (const auto& [from, to] : s.traffic_of(island).pairs) {
      BOOST_TEST(nodes[island].contains(from - 1u));
      BOOST_TEST(nodes[island].contains(to - 1u));
    }
}

BOOST_DATA_TEST_CASE(a_death_leaves_the_other_island_untouched,
                     bdata::make({0, 1}) * bdata::xrange(100, 900, 100), dead,
                     when) {
  const auto other = std::uint32_t(1 - dead);
  static std::map<std::uint32_t, small_shoal::traffic> calm; // by island
  if (calm.empty()) {
    two_islands s;
    BOOST_REQUIRE(s.finish());
    for (std::uint32_t i = 0; i < 2; ++i)
      calm[i] = s.traffic_of(i);
  }
  two_islands s;
  const auto of_other = s.nodes_of(other);
  const core::island_place before = s.place(other);
  const core::epoch since = s.place(std::uint32_t(dead)).since;
  for (int i = 0; i < when; ++i)
    s.step();
  BOOST_REQUIRE(!s.ended());
  // Not the peer that has the text.
  const std::size_t victim = *s.nodes_of(std::uint32_t(dead)).rbegin();
  s.kill(victim);
  for (int i = 0; i < 150; ++i)
    s.step();
  s.restart(victim);
  BOOST_TEST(s.place(std::uint32_t(dead)).since != since);
  BOOST_TEST((s.place(other) == before));
  BOOST_REQUIRE(s.finish());
  const small_shoal::traffic& moved = s.traffic_of(other);
  BOOST_TEST(moved.transfers == calm[other].transfers);
  for (const char* kind : {"seal", "vote", "have_checkpoint"})
    BOOST_TEST(count(moved, kind) == count(calm[other], kind), kind);
  const std::size_t witness = *of_other.begin();
  const run_record r = s.record(witness, other);
  BOOST_TEST(r.losses.size() == std::size_t(steps));
  BOOST_TEST(r.repeated == 0u);
  BOOST_TEST(r.lost_states == 0u);
  // And the island that was hit has lost no step either.
  const run_record hit = s.record(witness, std::uint32_t(dead));
  BOOST_TEST(hit.losses.size() == std::size_t(steps));
  BOOST_TEST(hit.lost_states == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
