// tests/transport/shm/exposed_test.cpp -- memory that others read, and slots.
#include "transport/shm/arena.hpp"
#include "transport/shm/exposed.hpp"

#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <set>

using namespace shoal::transport::shm;

namespace {

constexpr std::size_t unit = arena::allocation_bytes_min;

std::span<std::byte> take(arena& from, std::size_t bytes) {
  return {static_cast<std::byte*>(from.allocate(bytes)), bytes};
}

void give_back(arena& to, std::span<std::byte> bytes) {
  to.deallocate(bytes.data(), bytes.size());
}

} // namespace

BOOST_AUTO_TEST_SUITE(shm_arena)

// Any order of taking and giving back: nothing overlaps, all comes together.
BOOST_AUTO_TEST_CASE(allocations_do_not_overlap_and_all_memory_returns) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 random(seed);
      arena all(64 * unit);
      std::map<std::uint64_t, std::span<std::byte>> held; // by offset
      for (int step = 0; step < 400; ++step) {
        if (held.empty() || random() % 2 == 0) {
          const auto bytes = take(all, unit + random() % (8 * unit));
          const auto offset = all.offset_of(bytes);
          if (!offset) { // full: it is other memory, as good as any
            std::ranges::fill(bytes, std::byte{1});
            give_back(all, bytes);
            continue;
          }
          const auto next = held.lower_bound(*offset);
          BOOST_REQUIRE(
            (next == held.end() || *offset + bytes.size() <= next->first));
          if (next != held.begin()) {
            const auto& [before, other] = *std::prev(next);
            BOOST_REQUIRE(before + other.size() <= *offset);
          }
          held.emplace(*offset, bytes);
        } else {
          const auto at =
            std::next(held.begin(), std::ptrdiff_t(random() % held.size()));
          give_back(all, at->second);
          held.erase(at);
        }
      }
      for (const auto& [offset, bytes] : held)
        give_back(all, bytes);
      BOOST_TEST(all.free_bytes() == all.size());
      const auto whole = take(all, all.size());
      BOOST_TEST(all.offset_of(whole).value() == 0u);
      give_back(all, whole);
    }
  }
}

BOOST_AUTO_TEST_CASE(small_or_excess_allocations_use_usual_memory) {
  arena all(4 * unit);
  const auto small = take(all, unit - 1);
  BOOST_TEST(!all.offset_of(small));
  const auto most = take(all, 3 * unit + 1);
  BOOST_TEST(all.offset_of(most).has_value());
  const auto more = take(all, unit);
  BOOST_TEST(!all.offset_of(more));
  BOOST_TEST(!all.offset_of({most.data(), 4 * unit + 1}));
  BOOST_TEST(!all.offset_of({most.data() - 1, 2}));
  for (const auto bytes : {small, most, more})
    give_back(all, bytes);
  BOOST_TEST(all.free_bytes() == all.size());
}

// No process can shorten it, which would end its readers; others open it for
// reading, and cannot write their mapping.
BOOST_AUTO_TEST_CASE(others_may_only_read) {
  arena all(4 * unit);
  const auto mine = take(all, unit);
  std::ranges::fill(mine, std::byte{42});
  const auto pid = static_cast<std::uint32_t>(getpid());
  const auto descriptor = static_cast<std::uint64_t>(all.descriptor());
  BOOST_TEST(!view::open(pid, descriptor, all.size() + 1));
  const auto seen = view::open(pid, descriptor, all.size());
  BOOST_REQUIRE(seen);
  BOOST_TEST((seen->bytes()[all.offset_of(mine).value()] == std::byte{42}));
  BOOST_TEST(ftruncate(all.descriptor(), 0) != 0);
  BOOST_TEST(mprotect(const_cast<std::byte*>(seen->bytes().data()), unit,
                      PROT_READ | PROT_WRITE)
             != 0);
  struct stat info {};
  BOOST_REQUIRE(fstat(all.descriptor(), &info) == 0);
  BOOST_TEST((info.st_mode & 0777) == 0400u);
  give_back(all, mine);
}

// What has been freed takes no memory any more.
BOOST_AUTO_TEST_CASE(freed_pages_go_back_to_the_system) {
  arena all(64 * unit);
  const auto pages = [&] {
    struct stat info {};
    BOOST_REQUIRE(fstat(all.descriptor(), &info) == 0);
    return info.st_blocks;
  };
  BOOST_TEST(pages() == 0);
  const auto mine = take(all, 32 * unit);
  std::ranges::fill(mine, std::byte{1});
  BOOST_TEST(pages() * 512 >= static_cast<std::ptrdiff_t>(32 * unit));
  give_back(all, mine);
  BOOST_TEST(pages() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(shm_exposure)

BOOST_AUTO_TEST_CASE(a_transfer_counts_until_it_is_withdrawn) {
  const auto head = std::make_unique<channel_head>();
  exposure mine(*head);
  const auto slot = mine.expose(7);
  BOOST_REQUIRE(slot);
  BOOST_TEST(is_exposed(*head, *slot, 7));
  BOOST_TEST(!is_exposed(*head, *slot, 8));
  mine.withdraw(*slot);
  BOOST_TEST(!is_exposed(*head, *slot, 7));
  const auto again = mine.expose(9); // the slot has another transfer
  BOOST_REQUIRE(again);
  BOOST_TEST(!is_exposed(*head, *slot, 7));
  BOOST_TEST(is_exposed(*head, *again, 9));
  mine.withdraw_all();
  BOOST_TEST(!is_exposed(*head, *again, 9));
}

BOOST_AUTO_TEST_CASE(each_transfer_has_a_slot_of_its_own_while_there_are_any) {
  const auto head = std::make_unique<channel_head>();
  exposure mine(*head);
  std::set<std::size_t> slots;
  for (std::uint64_t i = 1; i <= exposed_max; ++i) {
    BOOST_TEST(!mine.full());
    slots.insert(mine.expose(i).value());
  }
  BOOST_TEST(slots.size() == exposed_max);
  BOOST_TEST(*slots.rbegin() == exposed_max - 1);
  BOOST_TEST(mine.full());
  BOOST_TEST(!mine.expose(1));
  mine.withdraw(5);
  BOOST_TEST(mine.expose(1).value() == 5u);
}

// What the other end says is not believed.
BOOST_AUTO_TEST_CASE(a_place_outside_of_the_memory_is_none) {
  const std::vector<std::byte> memory(1000);
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  const auto place = [&](std::uint64_t offset, std::uint64_t total,
                         std::uint64_t slot) {
    frame f;
    f.offset = offset;
    f.total = total;
    f.slot = slot;
    return place_of(f, memory);
  };
  BOOST_REQUIRE(place(10, 990, exposed_max - 1));
  BOOST_TEST(place(10, 990, 0)->data() == memory.data() + 10);
  BOOST_TEST(place(10, 990, 0)->size() == 990u);
  BOOST_TEST(place(1000, 0, 0)->empty());
  BOOST_TEST(!place(10, 991, 0));
  BOOST_TEST(!place(1001, 0, 0));
  BOOST_TEST(!place(most, 2, 0));
  BOOST_TEST(!place(2, most, 0));
  BOOST_TEST(!place(most, most, 0));
  BOOST_TEST(!place(0, 1, exposed_max));
  BOOST_TEST(!place(0, 1, most));
  frame f;
  f.total = 1;
  BOOST_TEST(!place_of(f, {})); // it has no arena
}

BOOST_AUTO_TEST_SUITE_END()
