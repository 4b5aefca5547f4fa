// tests/runtime/core/training/data_order_test.cpp -- every window once a data epoch.
#include "runtime/core/training/data_order.hpp"

#include <boost/test/unit_test.hpp>

#include <set>
#include <vector>

BOOST_AUTO_TEST_SUITE(data_order_of_a_job)

using namespace shoal::core;

BOOST_AUTO_TEST_CASE(permute_is_a_permutation_of_any_size) {
  for (std::uint64_t size : {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 1000})
    for (std::uint64_t key : {0, 1, 12345}) {
      std::vector<bool> seen(size, false);
      for (std::uint64_t i = 0; i < size; ++i) {
        std::uint64_t to = permute(i, size, key);
        BOOST_REQUIRE(to < size);
        BOOST_TEST(!seen[to]);
        seen[to] = true;
      }
    }
}

BOOST_AUTO_TEST_CASE(each_window_occurs_once_in_a_data_epoch) {
  constexpr std::uint64_t windows = 101;
  data_order order(42, windows, 8); // 8 does not divide 101
  std::vector<std::set<std::uint64_t>> epochs;
  for (std::uint64_t step = 1; step <= 101; ++step)
    for (std::uint32_t i = 0; i < 8; ++i) {
      std::uint64_t e = order.data_epoch(step, i);
      if (e == epochs.size())
        epochs.emplace_back();
      BOOST_REQUIRE(e + 1 == epochs.size());
      BOOST_TEST(epochs[e].insert(order.sample(step, i)).second);
    }
  BOOST_REQUIRE(epochs.size() == 8u);
  for (auto& e : epochs)
    BOOST_TEST(e.size() == windows);
}

BOOST_AUTO_TEST_CASE(seed_and_data_epoch_change_the_order) {
  constexpr std::uint64_t windows = 500;
  data_order a(1, windows, 1), b(2, windows, 1), c(1, windows, 1);
  int same_seed = 0, other_seed = 0, other_epoch = 0, in_place = 0;
  for (std::uint64_t s = 1; s <= windows; ++s) {
    same_seed += a.sample(s, 0) == c.sample(s, 0);
    other_seed += a.sample(s, 0) == b.sample(s, 0);
    other_epoch += a.sample(s, 0) == a.sample(s + windows, 0);
    in_place += a.sample(s, 0) == s - 1;
  }
  BOOST_TEST(same_seed == 500);
  BOOST_TEST(other_seed < 15); // one expected by chance
  BOOST_TEST(other_epoch < 15);
  BOOST_TEST(in_place < 15);
}

BOOST_AUTO_TEST_CASE(neighbours_land_far_apart) {
  constexpr std::uint64_t windows = 1 << 16;
  data_order order(7, windows, 1);
  std::uint64_t near = 0;
  for (std::uint64_t s = 1; s < 10000; ++s) {
    std::uint64_t x = order.sample(s, 0), y = order.sample(s + 1, 0);
    near += (x > y ? x - y : y - x) < windows / 10;
  }
  // A uniform pair is that close in 19 % of cases.
  BOOST_TEST(near > 1600u);
  BOOST_TEST(near < 2200u);
}

BOOST_AUTO_TEST_CASE(a_huge_corpus_needs_no_table) {
  constexpr std::uint64_t windows = (std::uint64_t{1} << 40) + 12345;
  data_order order(3, windows, 1024);
  for (std::uint64_t s = 1; s < 100; ++s)
    BOOST_TEST(order.sample(s * 1'000'000, 1023) < windows);
}

BOOST_AUTO_TEST_SUITE_END()
