// tests/runtime/store/exchange_links_test.cpp -- the bytes of blobs over links, and
// questions whether a peer has one.
#include "runtime/core/errc.hpp"
#include "runtime/files/sha256.hpp"
#include "tests/runtime/store/exchange_world.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(exchange_by_links)

using namespace shoal;
using namespace shoal::tests;

namespace {

constexpr std::size_t piece = blob_exchange::piece_bytes;
constexpr std::size_t chunk = blob_exchange::chunk_bytes;

} // namespace

BOOST_AUTO_TEST_CASE(blobs_of_any_size_arrive) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, chunk, chunk + 1, chunk + piece,
        chunk + piece + 1, 20 * piece + 7})
    BOOST_TEST_CONTEXT("bytes " << bytes) {
      world w(2);
      w.link();
      const auto blob = noise(bytes);
      const auto digest = w.put(1, blob);
      w.fetch(0, digest, {1});
      w.settle();
      BOOST_TEST(w.ends == 1);
      BOOST_TEST(!w.result);
      BOOST_TEST(holds(w, 0, digest, blob));
      // By message only the first chunk, which names the size.
      BOOST_TEST(w.link_bytes == bytes - std::min(bytes, chunk));
      BOOST_TEST(w.nodes[0]->exchange->moved_bytes() == bytes);
      BOOST_TEST(w.nodes[1]->exchange->moved_bytes() == bytes);
      std::size_t served = 1;
      w.nodes[1]->exchange->list_queues(
        [&](blob_exchange::queues q) { served = q.served; });
      BOOST_TEST(served == 0u);
    }
}

BOOST_AUTO_TEST_CASE(another_holder_goes_on_at_the_piece_where_one_died) {
  world w(3);
  w.link();
  const auto blob = noise(40 * piece);
  const auto digest = w.put(1, blob);
  w.put(2, blob);
  w.fetch(0, digest, {1, 2});
  while (w.pieces_from[1] < 20)
    BOOST_TEST_REQUIRE(w.step());
  w.kill(1);
  w.settle();
  BOOST_TEST(!w.result);
  BOOST_TEST(holds(w, 0, digest, blob));
  BOOST_TEST(w.pieces_from[2] <= 22u);
}

/// It is up and answers, but its links carry nothing.
BOOST_AUTO_TEST_CASE(another_holder_goes_on_where_links_are_cut) {
  world w(3);
  w.link();
  const auto blob = noise(40 * piece);
  const auto digest = w.put(1, blob);
  w.put(2, blob);
  w.fetch(0, digest, {1, 2});
  while (w.pieces_from[1] < 20)
    BOOST_TEST_REQUIRE(w.step());
  w.nodes[1]->cut = true;
  w.settle();
  BOOST_TEST(w.ends == 1);
  BOOST_TEST(!w.result);
  BOOST_TEST(holds(w, 0, digest, blob));
  BOOST_TEST(w.pieces_from[2] <= 22u);
  std::size_t served = 1; // what nobody took was given up
  w.nodes[1]->exchange->list_queues(
    [&](blob_exchange::queues q) { served = q.served; });
  BOOST_TEST(served == 0u);
}

BOOST_AUTO_TEST_CASE(wrong_bytes_are_asked_of_another_holder) {
  world w(3);
  w.link();
  const auto blob = noise(10 * piece);
  const auto digest = w.put(1, blob);
  w.put(2, blob);
  w.nodes[1]->lies = true;
  w.fetch(0, digest, {1, 2});
  w.settle();
  BOOST_TEST(w.ends == 1);
  BOOST_TEST(!w.result);
  BOOST_TEST(holds(w, 0, digest, blob));
}

BOOST_AUTO_TEST_CASE(a_holder_of_fewer_bytes_has_not_the_blob) {
  world w(2);
  w.link();
  const auto blob = noise(3 * piece);
  const auto digest = w.put(1, blob);
  w.fetch(0, digest, {1}, 5 * piece);
  w.settle();
  BOOST_TEST(w.ends == 1);
  BOOST_TEST(bool(w.result));
  BOOST_TEST(!w.nodes[0]->blobs->contains(digest));
}

BOOST_AUTO_TEST_CASE(fetches_end_when_the_exchange_closes) {
  world w(2);
  w.link();
  const auto digest = w.put(1, noise(40 * piece));
  w.fetch(0, digest, {1});
  while (w.pieces_from[1] < 5)
    BOOST_TEST_REQUIRE(w.step());
  w.nodes[0]->exchange->close();
  BOOST_TEST(w.ends == 1);
  BOOST_TEST((w.result == std::errc::operation_canceled));
  w.settle();
  BOOST_TEST(w.ends == 1);
}

BOOST_AUTO_TEST_CASE(a_peer_says_whether_its_disk_has_a_blob) {
  world w(3);
  const auto digest = w.put(1, noise(10));
  const auto asked = [&](std::size_t peer, const blob_digest& d) {
    std::optional<bool> out;
    w.nodes[0]->exchange->has(d, 7, id_of(peer), [&](bool yes) { out = yes; });
    w.settle();
    BOOST_TEST_REQUIRE(out.has_value());
    return *out;
  };
  BOOST_TEST(asked(1, digest));
  BOOST_TEST((w.nodes[1]->blobs->remove_unless_pledged(digest, [](auto) {
    return false;
  }) == std::errc::device_or_resource_busy)); // it has said so
  BOOST_TEST(!asked(2, digest));
  // What is only in memory is gone soon.
  const auto other = sha256(noise(20, 2));
  w.nodes[1]->blobs->stay_in_memory(other);
  auto writer = w.nodes[1]->blobs->write_of(other);
  blob_digest none{};
  BOOST_TEST(!writer->append(noise(20, 2)));
  BOOST_TEST(!writer->commit(none, other));
  BOOST_TEST(w.nodes[1]->blobs->in_memory(other));
  BOOST_TEST(!asked(1, other));
  w.nodes[1]->mute = true;
  BOOST_TEST(!asked(1, digest));
  w.nodes[1]->mute = false;
  w.kill(1);
  BOOST_TEST(!asked(1, digest));
}

// Else it could have a holder give up the transfers of a job.
BOOST_AUTO_TEST_CASE(a_peer_gets_nothing_under_the_plan_of_a_job) {
  world w(2);
  w.link();
  const auto digest = w.put(1, noise(3 * blob_exchange::piece_bytes));
  blob_request r{1, digest, 0, blob_exchange::piece_bytes, 4711, 0};
  w.nodes[1]->exchange->request_received(id_of(0), r);
  w.settle();
  BOOST_TEST(w.transfers.empty());
  r.plan = blob_plan(~std::uint64_t{0});
  w.nodes[1]->exchange->request_received(id_of(0), r);
  w.settle();
  BOOST_TEST(w.transfers.size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
