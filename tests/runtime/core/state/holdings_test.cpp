// tests/runtime/core/state/holdings_test.cpp -- who holds what under places that
// can be checked by eye.
#include "runtime/core/state/holdings.hpp"
#include "runtime/core/view.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::test {

BOOST_AUTO_TEST_SUITE(who_holds_what)

using namespace shoal::core;
using parts = std::vector<part_index>;

namespace {

member_id who(std::uint8_t n) {
  member_id id;
  id.peer[0] = n;
  id.incarnation = 1;
  return id;
}
peer_id peer(std::uint8_t n) {
  return who(n).peer;
}

/// Four blocks: parts 0 to 5. Two replicas, cut unlike; member 5 follows the
/// parts from 3 on, and 1 and 2 arrive at member 6.
island_place two_replicas() {
  island_place a;
  a.since = 3;
  a.replicas = {{{stage_on(who(1), 0, 1), stage_on(who(2), 1, 4)}, 0, 4},
                {{stage_on(who(3), 0, 2), stage_on(who(4), 2, 4)}, 4, 8}};
  a.followers = {{who(5), 3, 6}};
  a.arriving = {{who(6), 1, 3}};
  return a;
}

} // namespace

BOOST_AUTO_TEST_CASE(the_ends_of_a_pipeline_hold_embedding_and_head) {
  const holdings h(two_replicas());
  BOOST_TEST((h.of(peer(1)).computes.list() == parts{0, 1}));
  BOOST_TEST((h.of(peer(2)).computes.list() == parts{2, 3, 4, 5}));
  BOOST_TEST((h.of(peer(4)).computes.list() == parts{3, 4, 5}));
  BOOST_TEST(h.computer(0, 2).peer[0] == 2);
  BOOST_TEST(h.computer(1, 2).peer[0] == 3);
  BOOST_TEST(h.stage(0, 1) == 0u);
  BOOST_TEST(h.stage(0, 2) == 1u);
  BOOST_TEST((h.computers(2) == std::vector{peer(2), peer(3)}));
  BOOST_TEST(h.first_replica(peer(3), 2) == 1u);
}

BOOST_AUTO_TEST_CASE(followers_hold_at_every_step_only_by_gradients) {
  island_place a = two_replicas();
  BOOST_TEST((holdings(a).of(peer(5)).held.list() == parts{3, 4, 5}));
  BOOST_TEST(holdings(a).holders(4) == 3u);
  a.copy_every = 4;
  const holdings h(a);
  BOOST_TEST(h.of(peer(5)).held.empty());
  BOOST_TEST((h.of(peer(5)).follows.list() == parts{3, 4, 5}));
  BOOST_TEST((h.followers(4) == std::vector{who(5)}));
  BOOST_TEST(h.followers(2).empty());
  BOOST_TEST(h.holders(4) == 2u);
  BOOST_TEST(h.least_copies(part_table(4)) == 2u); // copies that lag count
}

BOOST_AUTO_TEST_CASE(what_arrives_is_not_held_yet) {
  const holdings h(two_replicas());
  BOOST_TEST((h.of(peer(6)).arrives.list() == parts{1, 2}));
  BOOST_TEST(h.of(peer(6)).held.empty());
  BOOST_TEST((h.receivers() == std::vector{peer(6)}));
  BOOST_TEST((h.participants()
              == std::vector{peer(1), peer(2), peer(3), peer(4), peer(5)}));
  BOOST_TEST(h.source(1).peer[0] == 3); // of replica 1
  BOOST_TEST(h.source(2).peer[0] == 2); // of replica 0
  BOOST_TEST(h.least_copies(part_table(4)) == 2u);
}

BOOST_AUTO_TEST_CASE(a_stand_in_computes_a_part_for_two_replicas) {
  island_place a = two_replicas();
  BOOST_TEST(!holdings(a).computes_twice());
  BOOST_TEST(holdings(a).most_computers() == 2u);
  a.replicas[1].stages[1].shards = {{who(2)}}; // 4 has died
  const holdings h(a.replicas);
  BOOST_TEST(h.computes_twice());
  BOOST_TEST(h.most_computers() == 2u);
  BOOST_TEST((h.computers(4) == std::vector{peer(2)}));
  BOOST_TEST(h.of(peer(4)).computes.empty());
  BOOST_TEST(h.least_copies(part_table(4)) == 1u);
}

BOOST_AUTO_TEST_CASE(nobody_holds_anything_of_an_island_that_waits) {
  const holdings h(island_place{});
  BOOST_TEST(h.members().empty());
  BOOST_TEST(h.participants().empty());
  BOOST_TEST(h.of(peer(1)).held.empty());
  BOOST_TEST(h.of(who(1)).held.empty());
  BOOST_TEST(h.least_copies(part_table(4)) == 0u);
}

BOOST_AUTO_TEST_CASE(sizes_add_up_over_the_parts) {
  job_entry job;
  job.blocks = 3;
  job.embed_state_bytes = 1000;
  job.head_state_bytes = 2000;
  job.block_state_bytes = 40;
  const part_table table(job.blocks);
  BOOST_TEST(state_bytes(job, table.all()) == 3120u);
  std::uint64_t sum = 0;
  for (part_index p = 0; p < table.count(); ++p)
    sum += state_bytes(job, {p, p + 1});
  BOOST_TEST(sum == 3120u);
  BOOST_TEST(gradient_bytes(job, {1, 2}) == 10u);
  BOOST_TEST(copied_bytes(job, {1, 2}) == 30u);
  BOOST_TEST(state_bytes(job, {2, 2}) == 0u);
  BOOST_TEST(table.blocks_of({0, 1}).last == 0u);
  BOOST_TEST(table.blocks_of({table.head(), table.count()}).first == 3u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
