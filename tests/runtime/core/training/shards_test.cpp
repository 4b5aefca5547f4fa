// tests/runtime/core/training/shards_test.cpp -- the writers of the parts of a
// checkpoint.
#include "runtime/core/training/shards.hpp"
#include "tests/support/held_parts.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <numeric>

BOOST_AUTO_TEST_SUITE(shards)

using namespace shoal::core;

namespace {

peer_id peer(std::uint8_t n) {
  return {n};
}

/// Replicas of equal stages of `blocks` blocks in all; peers from 1 in order.
island_place
make_place(std::uint32_t replicas, std::uint32_t stages, std::uint32_t blocks) {
  island_place a;
  std::uint8_t n = 0;
  for (std::uint32_t r = 0; r < replicas; ++r) {
    replica_place p;
    for (std::uint32_t s = 0; s < stages; ++s)
      p.stages.push_back(stage_on({peer(++n), 1}, s * blocks / stages,
                                  (s + 1) * blocks / stages));
    a.replicas.push_back(p);
  }
  return a;
}

/// An embedding and a head of two blocks each.
std::vector<std::uint64_t> sizes(std::uint32_t blocks) {
  std::vector<std::uint64_t> out(blocks + 2, 100);
  out.front() = 200;
  out.back() = 201;
  return out;
}

shards_written told(std::vector<std::uint32_t> units) {
  shards_written m;
  for (std::uint32_t u : units)
    m.shards.push_back({u, {std::uint8_t(u + 1)}, 10, {99}, 20});
  return m;
}

} // namespace

BOOST_AUTO_TEST_CASE(each_unit_is_written_once_by_a_holder) { // C-1
  for (std::uint32_t replicas = 1; replicas <= 4; ++replicas)
    for (std::uint32_t stages = 1; stages <= 5; ++stages) {
      const island_place a = make_place(replicas, stages, 12);
      const auto writers = shard_writers(a, sizes(12));
      BOOST_REQUIRE(writers.size() == 14u);
      std::size_t written = 0;
      for (const peer_id& p : participants_of(a)) {
        const auto held = held_by(a, p);
        for (std::uint32_t u : units_written_by(writers, p)) {
          ++written;
          BOOST_TEST(held.contains(u));
        }
      }
      BOOST_TEST(written == 14u);
      BOOST_TEST((shard_writers(a, sizes(12)) == writers));
    }
}

/// A peer that cannot write is left out if another one holds the unit: in
/// another replica, else as a follower of every step.
BOOST_AUTO_TEST_CASE(a_peer_that_cannot_write_is_left_out) {
  const island_place two = make_place(2, 2, 12); // 1 2 | 3 4
  for (const peer_id& out : participants_of(two)) {
    const auto writers = shard_writers(two, sizes(12), {out});
    for (std::uint32_t u = 0; u < writers.size(); ++u) {
      BOOST_TEST((writers[u] != out));
      const auto held = held_by(two, writers[u]);
      BOOST_TEST(held.contains(u));
    }
  }
  island_place one = make_place(1, 2, 12);
  const auto nobody_else = shard_writers(one, sizes(12), {peer(1)});
  BOOST_TEST((nobody_else == shard_writers(one, sizes(12))));
  one.copy_every = 1;
  one.followers.push_back({member_id{peer(3), 1}, 0, 7});
  const auto followed = shard_writers(one, sizes(12), {peer(1)});
  for (std::uint32_t u = 0; u < followed.size(); ++u)
    BOOST_TEST((followed[u] == peer(u < 7 ? 3 : 2)));
  one.copy_every = 5; // it does not hold them at each step
  BOOST_TEST((shard_writers(one, sizes(12), {peer(1)}) == nobody_else));
}

BOOST_AUTO_TEST_CASE(replicas_share_the_bytes_of_their_stage) {
  for (std::uint32_t replicas = 1; replicas <= 4; ++replicas)
    for (std::uint32_t stages = 1; stages <= 4; ++stages) {
      const island_place a = make_place(replicas, stages, 24);
      const auto bytes = sizes(24);
      const auto writers = shard_writers(a, bytes);
      for (std::uint32_t s = 0; s < stages; ++s) {
        const part_range range = parts_of(a, 0, s);
        std::uint64_t of_stage = 0;
        for (auto u = range.first; u < range.last; ++u)
          of_stage += bytes[u];
        for (std::uint32_t r = 0; r < replicas; ++r) {
          std::uint64_t mine = 0;
          for (std::uint32_t u :
               units_written_by(writers, a.replicas[r].stages[s].lead().peer))
            mine += bytes[u];
          // Never off by more than the largest unit.
          BOOST_TEST(mine <= of_stage / replicas + 201);
          BOOST_TEST(mine + 201 >= of_stage / replicas);
        }
      }
    }
}

BOOST_AUTO_TEST_CASE(a_peer_of_several_stages_gets_no_second_share) {
  // Replica 0 is one peer's; replica 1 has two.
  island_place a = make_place(2, 2, 24);
  a.replicas[0].stages[1].shards = a.replicas[0].stages[0].shards;
  const auto writers = shard_writers(a, sizes(24));
  const auto count = [&](std::uint8_t n) {
    return units_written_by(writers, peer(n)).size();
  };
  BOOST_TEST(count(1) + count(3) + count(4) == 26u);
  for (std::uint8_t n : {1, 3, 4})
    BOOST_TEST((count(n) >= 7u && count(n) <= 10u));
}

/// 1 2 | 3 4; 1 is the checkpointer, 1 and 4 keep.
BOOST_AUTO_TEST_CASE(whose_disk_refuses_does_not_publish_or_keep) {
  island_place a = make_place(2, 2, 12);
  a.checkpointer = {peer(1), 1};
  a.keepers = {{peer(1), 1}, {peer(4), 1}};
  using peers = std::vector<peer_id>;
  BOOST_TEST((publisher_of(a, {}) == peer(1)));
  BOOST_TEST((publisher_of(a, {peer(1)}) == peer(4))); // it keeps them
  BOOST_TEST((publisher_of(a, {peer(1), peer(4)}) == peer(2)));
  BOOST_TEST((publisher_of(a, {peer(1), peer(2), peer(3), peer(4)})
              == peer(1))); // it tries on
  BOOST_TEST((checkpoint_keepers(a, {}) == peers{peer(1), peer(4)}));
  BOOST_TEST((checkpoint_keepers(a, {peer(2)}) == peers{peer(1), peer(4)}));
  BOOST_TEST((checkpoint_keepers(a, {peer(4)}) == peers{peer(1), peer(2)}));
  BOOST_TEST((checkpoint_keepers(a, {peer(4), peer(2), peer(3)})
              == peers{peer(1), peer(4)})); // no other peer: it tries again
}

/// 1 2 | 3 4 and two more, 5 and 6; each part in two stores.
BOOST_AUTO_TEST_CASE(keepers_share_the_parts_evenly) {
  constexpr std::uint32_t parts = 402;
  island_place a = make_place(2, 2, parts - 2);

  const auto id = [](std::uint8_t n) { return member_id{peer(n), 1}; };
  a.keepers = {id(1), id(4)};
  const auto kept = [&](std::uint8_t n, std::vector<peer_id> unable = {}) {
    return parts_kept_by(peer(n), a, parts, unable);
  };
  const part_set all(part_range{0, parts});
  BOOST_TEST((kept(1) == all));
  BOOST_TEST(kept(2).empty());
  BOOST_TEST((kept(2, {peer(4)}) == all));
  BOOST_TEST((parts_gathered_by(peer(2), a, parts, {}) == all));
  a.part_keepers = {id(1), id(2), id(4), id(5), id(6)};
  const auto stores = [&](std::vector<peer_id> unable = {}) {
    std::vector<std::size_t> out(parts);
    for (std::uint8_t n = 1; n <= 6; ++n)
      for (const part_index p : kept(n, unable))
        ++out[p];
    return out;
  };
  const std::vector<std::size_t> two(parts, 2);
  BOOST_TEST(stores() == two, boost::test_tools::per_element());
  BOOST_TEST(stores({peer(5)}) == two, boost::test_tools::per_element());
  BOOST_TEST(kept(3).empty());
  BOOST_TEST((parts_gathered_by(peer(2), a, parts, {}) == kept(2)));
  for (const std::uint8_t n : {1, 2, 4, 5, 6})
    BOOST_TEST((kept(n).size() > 120 && kept(n).size() < 200)); // 161 each
  // Without 5 the others have what they had, and its parts.
  BOOST_TEST(kept(5, {peer(5)}).empty());
  for (const std::uint8_t n : {1, 2, 4, 6}) {
    BOOST_TEST(kept(n, {peer(5)}).includes(kept(n)));
    part_set more = kept(n, {peer(5)});
    more.remove(kept(n));
    BOOST_TEST(kept(5).includes(more));
  }
  // Too few are able: those that are left have all.
  const std::vector<peer_id> most{peer(1), peer(2), peer(3), peer(4)};
  BOOST_TEST((kept(5, most) == all));
  BOOST_TEST((kept(6, most) == all));
}

BOOST_AUTO_TEST_CASE(each_part_must_be_in_enough_stores) {
  const part_set none, low(part_range{0, 2}), high(part_range{2, 4});
  BOOST_TEST(everywhere(4, 1, {none}));
  BOOST_TEST(!everywhere(4, 1, {}));
  BOOST_TEST(!everywhere(4, 1, {low}));
  BOOST_TEST(everywhere(4, 1, {low, high}));
  BOOST_TEST(!everywhere(4, 2, {low, high}));
  BOOST_TEST(everywhere(4, 2, {low, high, none}));
  BOOST_TEST(everywhere(2, 1, {high})); // of parts that are not there
}

BOOST_AUTO_TEST_CASE(others_save_what_they_hold) {
  island_place a = make_place(2, 2, 12); // 1 2 | 3 4
  a.checkpointer = {peer(1), 1};
  BOOST_TEST(others_can_save(a, peer(1), {}));
  BOOST_TEST(others_can_save(a, peer(1), {peer(2)}));
  BOOST_TEST(!others_can_save(a, peer(1), {peer(3)})); // its units
  BOOST_TEST(!others_can_save(a, peer(1), {peer(2), peer(3), peer(4)}));
  const island_place alone = make_place(1, 2, 12);
  BOOST_TEST(!others_can_save(alone, peer(2), {}));
}

BOOST_AUTO_TEST_CASE(a_checkpoint_is_complete_when_every_writer_has_reported) {
  const std::vector<peer_id> writers{peer(1), peer(2), peer(1)};
  shard_tally tally(writers);
  tally.take(peer(1), told({0, 2}));
  BOOST_TEST(!tally.complete());
  tally.take(peer(3), told({1})); // C-2: it is not the writer
  tally.take(peer(1), told({1}));
  BOOST_TEST(!tally.complete());
  tally.take(peer(2), told({1, 7}));
  BOOST_REQUIRE(tally.complete());
  const auto all = tally.shards();
  BOOST_REQUIRE(all.size() == 3u);
  for (std::uint32_t u = 0; u < 3; ++u)
    BOOST_TEST(all[u].unit == u);
}

BOOST_AUTO_TEST_CASE(a_peer_that_cannot_write_is_named_until_it_can) {
  shard_tally tally({peer(1), peer(2)});
  tally.take(peer(1), told({0}));
  shards_written full;
  full.why = "no space";
  full.trying = true;
  tally.take(peer(3), full); // not requested
  BOOST_TEST(!tally.failed());
  tally.take(peer(2), full);
  BOOST_TEST(!tally.complete());
  BOOST_REQUIRE(tally.failed());
  BOOST_TEST((tally.failed()->at == peer(2)));
  BOOST_TEST(tally.failed()->why == "no space");
  BOOST_TEST(tally.failed()->trying);
  tally.take(peer(2), told({1}));
  BOOST_TEST(!tally.failed());
  BOOST_TEST(tally.complete());
}

BOOST_AUTO_TEST_SUITE_END()
