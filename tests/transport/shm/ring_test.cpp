// tests/transport/shm/ring_test.cpp -- frames through a ring of shared memory.
#include "transport/shm/ring.hpp"

#include <boost/test/unit_test.hpp>

#include <deque>
#include <random>
#include <vector>

BOOST_AUTO_TEST_SUITE(shm_ring)

using namespace shoal::transport::shm;
using result = ring_reader::result;

namespace {

struct both {
  explicit both(std::size_t bytes)
    : memory(bytes), out(memory), in(std::span<const std::byte>(memory)) {}
  std::vector<std::byte> memory;
  ring_writer out;
  ring_reader in;
};

struct sent {
  std::uint64_t transfer;
  std::vector<std::byte> payload;
};

} // namespace

// Any mixture of writing and reading, in a ring that is often full.
BOOST_AUTO_TEST_CASE(frames_come_out_as_they_went_in) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 random(seed);
      both ring(std::size_t{1} << (8 + random() % 6));
      std::deque<sent> under_way;
      std::uint64_t next = 1, taken = 0, got = 0;
      for (int step = 0; step < 5000; ++step) {
        if (random() % 2 == 0) {
          BOOST_REQUIRE(ring.out.plausible(taken));
          const auto room = ring.out.room(taken);
          if (!room)
            continue;
          sent s{next++, std::vector<std::byte>(random() % (*room + 1))};
          for (auto& b : s.payload)
            b = std::byte(static_cast<std::uint8_t>(random()));
          frame f;
          f.kind = frame_kind::bulk;
          f.transfer = s.transfer;
          ring.out.put(f, s.payload);
          under_way.push_back(std::move(s));
        } else {
          frame f;
          std::span<const std::byte> payload;
          const auto r = ring.in.next(ring.out.written(), f, payload);
          BOOST_REQUIRE((r == result::frame) == !under_way.empty());
          if (under_way.empty())
            continue;
          BOOST_REQUIRE(f.transfer == under_way.front().transfer);
          BOOST_REQUIRE(std::equal(payload.begin(), payload.end(),
                                   under_way.front().payload.begin(),
                                   under_way.front().payload.end()));
          under_way.pop_front();
          ring.in.pop();
          taken = ring.in.taken();
          ++got;
        }
      }
      BOOST_TEST(got > 1000u);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_full_ring_has_no_room_until_it_is_read) {
  both ring(1024);
  while (const auto room = ring.out.room(0))
    ring.out.put({}, std::vector<std::byte>(std::min<std::size_t>(*room, 100)));
  BOOST_TEST(ring.out.written() == 1024u);
  frame f;
  std::span<const std::byte> payload;
  BOOST_REQUIRE((ring.in.next(1024, f, payload) == result::frame));
  ring.in.pop();
  BOOST_TEST(ring.out.room(ring.in.taken()).has_value());
}

// What the other end says is not believed.
BOOST_AUTO_TEST_CASE(positions_that_cannot_be_are_broken) {
  both ring(1024);
  ring.out.put({}, {});
  frame f;
  std::span<const std::byte> payload;
  for (const std::uint64_t written : {1u, 63u, 65u, 1088u, ~0u})
    BOOST_TEST((ring.in.next(written, f, payload) == result::broken), written);
  BOOST_REQUIRE((ring.in.next(64, f, payload) == result::frame));
  ring.in.pop();
  BOOST_TEST((ring.in.next(0, f, payload) == result::broken));
  for (const std::uint64_t taken : {1u, 128u, ~0u})
    BOOST_TEST(!ring.out.plausible(taken), taken);
}

BOOST_AUTO_TEST_CASE(a_payload_longer_than_the_ring_data_is_broken) {
  for (const std::uint32_t bytes : {65u, 960u, 0xffffffffu}) {
    both ring(1024);
    ring.out.put({}, std::vector<std::byte>(64));
    auto f = reinterpret_cast<frame*>(ring.memory.data());
    f->bytes = bytes;
    frame seen;
    std::span<const std::byte> payload;
    BOOST_TEST((ring.in.next(128, seen, payload) == result::broken), bytes);
  }
}

BOOST_AUTO_TEST_SUITE_END()
