// tests/actors/gradient_sums_test.cpp -- sums of units, and their squares.
#include "actors/reduction/gradient_sums.hpp"
#include "actors/reduction_fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <algorithm>
#include <set>

BOOST_AUTO_TEST_SUITE(gradient_sums_)

namespace bdata = boost::unit_test::data;
using namespace shoal;
using namespace shoal::test;

namespace {

struct seen final : actors::gradient_sums::events {
  void summed(model::unit_index u) override {
    BOOST_TEST(sums.insert(u).second); // once
  }
  void squared(model::unit_index u) override {
    BOOST_TEST(squares.insert(u).second);
  }
  void failed(const std::string& what, std::error_code) override {
    failures.push_back(what);
  }
  std::set<model::unit_index> sums, squares;
  std::vector<std::string> failures;
};
using shoal_of_sums = reduction_shoal<actors::gradient_sums, seen>;

/// Two replicas of two stages; peer 4 follows the head.
island_place two_replicas() {
  island_place a;
  a.replicas = {pipeline({{0, 1}, {1, 1}}, 0, 1),
                pipeline({{2, 1}, {3, 1}}, 1, 2)};
  a.followers = {follower(4, 3, 4)};
  return a;
}

} // namespace

BOOST_DATA_TEST_CASE(units_are_summed_over_replicas_and_then_squared,
                     bdata::xrange(8), seed) {
  shoal_of_sums s(5, two_replicas(), false, std::uint32_t(seed));
  for (std::uint64_t step : {1u, 2u}) {
    for (std::size_t n = 0; n < 4; ++n)
      for (const model::unit_index u : s[n].here.computed)
        std::ranges::fill(s[n].gradient(u), float(n + step));
    for (auto& p : s.all)
      p->events = {};
    s.begin(step);
    for (std::size_t n = 0; n < 4; ++n)
      for (const model::unit_index u : s[n].here.computed)
        s[n].part.ready(u);
    s.settle();
    for (std::size_t n = 0; n < 4; ++n) {
      BOOST_TEST(std::ranges::equal(s[n].events.sums, s[n].here.computed));
      BOOST_TEST(!s[n].part.squares());
      for (const model::unit_index u : s[n].here.computed) {
        for (const float g : s[n].gradient(u))
          BOOST_TEST(g == float(n % 2 + n % 2 + 2 + 2 * step));
        s[n].part.square(u);
      }
    }
    s.settle();
    for (std::size_t n = 0; n < 4; ++n) {
      BOOST_TEST(std::ranges::equal(s[n].events.squares, s[n].here.computed));
      const auto squares = s[n].part.squares();
      BOOST_REQUIRE(squares);
      BOOST_REQUIRE(squares->size() == s[n].here.computed.size());
      auto u = s[n].here.computed.begin();
      for (const core::unit_square& square : *squares) {
        BOOST_TEST(square.unit == *u);
        double want = 0;
        for (const float g : s[n].gradient(*u++))
          want += double(g) * g;
        BOOST_TEST(square.sum == want);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_followed_unit_is_squared_too) {
  shoal_of_sums s(5, two_replicas(), false, 1);
  s[4].part.begin(1);
  BOOST_TEST(!s[4].part.squares());
  s[4].part.square(3);
  s.settle();
  const auto squares = s[4].part.squares();
  BOOST_REQUIRE(squares);
  BOOST_TEST(squares->front().unit == 3u);
}

BOOST_AUTO_TEST_CASE(a_sum_whose_transfer_fails_is_reported) {
  shoal_of_sums s(4, two_replicas(), false, 1);
  s.begin(1);
  s[0].part.ready(0);
  s[0].links.cancel(7);
  s.settle();
  BOOST_TEST(s[0].events.sums.empty());
  BOOST_TEST(!s[0].events.failures.empty());
}

BOOST_AUTO_TEST_CASE(squares_of_the_step_before_are_not_heeded) {
  island_place alone;
  alone.replicas = {pipeline({{0, 2}}, 0, 1)};
  shoal_of_sums s(1, alone, false, 1);
  s.begin(1);
  for (const model::unit_index u : s[0].here.computed)
    s[0].part.ready(u);
  s.settle();
  s[0].part.square(0);
  s.begin(2);
  s.settle();
  BOOST_TEST(s[0].events.squares.empty());
}

BOOST_AUTO_TEST_SUITE_END()
