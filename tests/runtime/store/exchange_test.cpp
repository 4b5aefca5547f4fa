// tests/runtime/store/exchange_test.cpp -- a blob arrives whole while one
// honest holder lives, and never otherwise.
#include "runtime/core/errc.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/files/sha256.hpp"
#include "tests/runtime/store/exchange_world.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <set>

BOOST_AUTO_TEST_SUITE(exchange)

using namespace shoal;
using namespace shoal::runtime;
using core::blob_digest;
using core::peer_id;
using namespace shoal::tests;

BOOST_AUTO_TEST_CASE(blobs_of_any_size_arrive) {
  constexpr std::size_t chunk = blob_exchange::chunk_bytes;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, chunk - 1,
                                  chunk, chunk + 1, 20 * chunk, 21 * chunk + 7})
    for (const bool known : {false, true})
      BOOST_TEST_CONTEXT("bytes " << bytes << " known " << known) {
        world w(2);
        const auto blob = noise(bytes);
        const auto digest = w.put(1, blob);
        w.fetch(0, digest, {1},
                known ? std::optional<std::uint64_t>(bytes) : std::nullopt);
        w.settle();
        BOOST_TEST(w.ends == 1);
        BOOST_TEST(!w.result);
        BOOST_TEST(holds(w, 0, digest, blob));
        w.fetch(0, digest, {});
        BOOST_TEST(w.ends == 2); // it is there already
      }
}

/// All messages of a link wait behind the chunks that are under way.
BOOST_AUTO_TEST_CASE(few_chunks_are_in_flight_on_a_slow_link) {
  for (const bool slow : {false, true}) {
    world w(2);
    const auto blob = noise(40 * blob_exchange::chunk_bytes);
    const auto digest = w.put(1, blob);
    w.fetch(0, digest, {1});
    std::size_t most = 0;
    while (w.ends == 0) {
      if (slow) // each message takes so long
        w.now += blob_exchange::answer_slow;
      for (auto& n : w.nodes)
        n->exchange->tick(w.now);
      BOOST_REQUIRE(w.step());
      w.nodes[0]->exchange->list_queues([&](blob_exchange::queues q) {
        most = std::max(most, q.fetched_chunks);
      });
    }
    BOOST_TEST(!w.result);
    BOOST_TEST(holds(w, 0, digest, blob));
    BOOST_TEST(most == (slow ? 1u : blob_exchange::window));
  }
}

BOOST_AUTO_TEST_CASE(a_blob_without_holders_is_not_found) {
  world w(3);
  const auto digest = sha256(noise(10));
  w.fetch(0, digest, {1, 2});
  w.settle();
  BOOST_TEST(w.ends == 1);
  BOOST_TEST((w.result == errc::not_found));
  w.fetch(0, digest, {});
  w.settle();
  BOOST_TEST(w.ends == 2);
  BOOST_TEST((w.result == errc::not_found));
}

BOOST_AUTO_TEST_CASE(another_holder_goes_on_where_one_died) {
  world w(3);
  const auto blob = noise(40 * blob_exchange::chunk_bytes);
  const auto digest = w.put(1, blob);
  w.put(2, blob);
  w.fetch(0, digest, {1, 2});
  while (w.nodes[1]->served < 20)
    w.step();
  w.kill(1);
  w.settle();
  BOOST_TEST(!w.result);
  BOOST_TEST(holds(w, 0, digest, blob));
  BOOST_TEST(w.nodes[2]->served < 40u);
}

BOOST_AUTO_TEST_CASE(another_holder_goes_on_where_a_disk_hangs) {
  world w(3);
  const auto blob = noise(40 * blob_exchange::chunk_bytes);
  const auto digest = w.put(1, blob);
  w.put(2, blob);
  w.fetch(0, digest, {1, 2});
  while (w.nodes[1]->served < 20)
    w.step();
  w.nodes[1]->disk.hangs = true; // it is up, and takes requests
  w.settle();
  BOOST_TEST(w.ends == 1);
  BOOST_TEST(!w.result);
  BOOST_TEST(holds(w, 0, digest, blob));
  BOOST_TEST(w.nodes[2]->served < 40u);
  BOOST_TEST(w.nodes[0]->exchange->moved_bytes() >= blob.size());
  BOOST_TEST(w.nodes[2]->exchange->moved_bytes() > 0u);
}

/// A fetch whose process dies when some 20 of 40 chunks are on the disk.
struct cut_fetch {
  explicit cut_fetch(bool known)
    : size(known ? std::optional<std::uint64_t>(blob.size()) : std::nullopt) {
    digest = w.put(1, blob);
    w.put(2, blob);
    w.fetch(0, digest, {1, 2}, size);
    while (w.nodes[1]->served < 20)
      w.step();
    w.restart(0);
    w.ends = 0;
    w.nodes[1]->served_bytes = 0;
    begun = w.nodes[0]->blobs->begun(digest);
    BOOST_TEST_REQUIRE(begun > 0u);
  }
  void go_on() {
    w.fetch(0, digest, {1, 2}, size);
    w.settle();
    BOOST_TEST(w.ends == 1);
    BOOST_TEST(!w.result, w.result.message());
    BOOST_TEST(holds(w, 0, digest, blob));
    BOOST_TEST(w.nodes[0]->blobs->begun(digest) == 0u);
  }
  std::uint64_t fetched() const { return w.nodes[1]->served_bytes; }
  std::filesystem::path part() const {
    return w.nodes[0]->place.path / "parts" / core::to_hex(digest);
  }

  world w{3};
  const std::vector<std::byte> blob = noise(40 * blob_exchange::chunk_bytes);
  std::optional<std::uint64_t> size;
  blob_digest digest{};
  std::uint64_t begun = 0;
};

BOOST_AUTO_TEST_CASE(the_next_process_goes_on_where_one_died) {
  for (const bool known : {false, true}) {
    cut_fetch f(known);
    f.go_on();
    BOOST_TEST(f.fetched() == f.blob.size() - f.begun);
  }
}

BOOST_AUTO_TEST_CASE(a_holder_that_dies_while_the_disk_reads_is_passed_over) {
  cut_fetch f(false);
  f.w.fetch(0, f.digest, {1, 2});
  f.w.kill(1);
  f.w.settle();
  BOOST_TEST(!f.w.result);
  BOOST_TEST(holds(f.w, 0, f.digest, f.blob));
  BOOST_TEST(f.w.nodes[2]->served_bytes == f.blob.size() - f.begun);
}

BOOST_AUTO_TEST_CASE(a_begun_blob_that_lies_is_fetched_from_the_start) {
  for (const bool known : {false, true})
    for (const bool long_one : {false, true})
      BOOST_TEST_CONTEXT("known " << known << " long " << long_one) {
        cut_fetch f(known);
        if (long_one)
          std::filesystem::resize_file(f.part(), f.blob.size() + 1);
        else
          std::ofstream(f.part(), std::ios::in) << "other bytes";
        f.go_on();
        BOOST_TEST(f.fetched() >= f.blob.size());
      }
}

BOOST_AUTO_TEST_CASE(a_silent_holder_is_given_up) {
  world w(3);
  const auto blob = noise(1000);
  const auto digest = w.put(1, blob);
  w.put(2, blob);
  w.nodes[1]->mute = true;
  w.fetch(0, digest, {1, 2});
  w.settle();
  BOOST_TEST(!w.result);
  w.nodes[2]->mute = true;
  BOOST_TEST(!w.nodes[0]->blobs->remove(digest));
  w.fetch(0, digest, {1, 2});
  w.settle();
  BOOST_TEST(w.ends == 2);
  BOOST_TEST((w.result == errc::timed_out));
}

BOOST_AUTO_TEST_CASE(liars_are_found_out) {
  const auto blob = noise(5 * blob_exchange::chunk_bytes);
  for (const bool boasts : {false, true})
    for (const bool known : {false, true}) {
      world w(4);
      const auto digest = w.put(1, blob);
      for (const std::size_t i : {2, 3})
        w.put(i, blob);
      for (const std::size_t i : {1, 2})
        (boasts ? w.nodes[i]->boasts : w.nodes[i]->lies) = true;
      const auto size =
        known ? std::optional<std::uint64_t>(blob.size()) : std::nullopt;
      w.fetch(0, digest, {1, 2}, size);
      w.settle();
      BOOST_TEST((w.result == errc::corrupt));
      BOOST_TEST(!w.nodes[0]->blobs->contains(digest));
      w.fetch(0, digest, {1, 2, 3}, size);
      w.settle();
      BOOST_TEST(!w.result);
      BOOST_TEST(holds(w, 0, digest, blob));
    }
}

// Each blob comes from the honest holder; the one that lies is named, and after some
// of them it is not asked any more.
BOOST_AUTO_TEST_CASE(a_liar_is_named_and_then_not_asked_any_more) {
  world w(3);
  w.nodes[1]->lies = true;
  for (std::size_t blob = 1; blob <= blob_exchange::wrong_max + 2; ++blob) {
    const auto bytes = noise(2 * blob_exchange::chunk_bytes, blob);
    const auto digest = w.put(1, bytes);
    w.put(2, bytes);
    const std::size_t before = w.nodes[1]->served;
    w.fetch(0, digest, {1, 2});
    w.settle();
    BOOST_TEST(!w.result, w.result.message());
    BOOST_TEST(holds(w, 0, digest, bytes));
    const bool asked = blob <= blob_exchange::wrong_max;
    BOOST_TEST((w.nodes[1]->served > before) == asked);
    BOOST_TEST(w.wrong[id_of(1)] == std::min(blob, blob_exchange::wrong_max));
    BOOST_TEST(w.given_up.contains(id_of(1))
               == (blob >= blob_exchange::wrong_max));
  }
  BOOST_TEST(!w.wrong.contains(id_of(2)));
  const auto bytes = noise(9, 99);
  const auto digest = w.put(1, bytes);
  w.fetch(0, digest, {1});
  w.settle();
  BOOST_TEST((w.result == errc::not_found));
}

BOOST_AUTO_TEST_CASE(fetches_of_one_blob_are_one_and_many_wait_in_line) {
  world w(2);
  std::vector<blob_digest> digests;
  for (std::uint64_t i = 0; i < 10; ++i)
    digests.push_back(w.put(1, noise(1000, i)));
  for (int twice = 0; twice < 2; ++twice)
    for (const auto& d : digests)
      w.fetch(0, d, {1});
  w.settle();
  BOOST_TEST(w.ends == 20);
  BOOST_TEST(w.nodes[1]->served == 10u);
}

BOOST_AUTO_TEST_CASE(a_greedy_peer_gets_its_share_only) {
  world w(2);
  const auto digest = w.put(1, noise(1000));
  for (std::uint64_t i = 0; i < 1000; ++i)
    w.nodes[1]->exchange->request_received(id_of(0), {i, digest, 0, 100});
  while (w.nodes[1]->disk.step())
    continue;
  BOOST_TEST(w.nodes[1]->served == blob_exchange::served_per_peer_max);
  w.nodes[1]->exchange->request_received(id_of(0),
                                         {7, digest, UINT64_MAX, UINT32_MAX});
  w.nodes[1]->disk.step();
  BOOST_TEST(w.nodes[1]->served == blob_exchange::served_per_peer_max + 1);
}

BOOST_AUTO_TEST_CASE(close_ends_what_is_under_way) {
  world w(2);
  const auto digest = w.put(1, noise(100000));
  w.fetch(0, digest, {1});
  w.step();
  w.nodes[0]->exchange->close();
  BOOST_TEST(w.ends == 1);
  BOOST_TEST((w.result == std::errc::operation_canceled));
  w.settle();
  BOOST_TEST(w.ends == 1);
}

// One honest holder lives to the end; the others die, lie, boast or are mute.
BOOST_AUTO_TEST_CASE(one_honest_holder_is_enough) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed)
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 random(seed);
      world w(5);
      const auto blob = noise(random() % (12 * blob_exchange::chunk_bytes));
      const auto digest = w.put(1, blob);
      std::vector<std::size_t> holders{1};
      std::vector<std::size_t> mortal;
      for (std::size_t i = 2; i < 5; ++i) {
        holders.push_back(i);
        if (random() % 4 != 0)
          w.put(i, blob);
        w.nodes[i]->lies = random() % 3 == 0;
        w.nodes[i]->boasts = random() % 4 == 0;
        w.nodes[i]->mute = random() % 5 == 0;
        if (random() % 2 == 0)
          mortal.push_back(i);
      }
      std::shuffle(holders.begin(), holders.end(), random);
      w.fetch(0, digest, holders,
              random() % 2 ? std::optional<std::uint64_t>(blob.size())
                           : std::nullopt);
      for (const auto i : mortal) {
        for (auto n = random() % 40; n > 0; --n)
          w.step();
        w.kill(i);
      }
      w.settle();
      BOOST_TEST(w.ends == 1);
      BOOST_TEST(!w.result, w.result.message());
      BOOST_TEST(holds(w, 0, digest, blob));
    }
}

BOOST_AUTO_TEST_SUITE_END()
