// tests/actors/gradient_copies_test.cpp -- final gradients reach other peers.
#include "actors/reduction/gradient_copies.hpp"
#include "actors/reduction_fixture.hpp"
#include "runtime/core/planning/arrivals.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

BOOST_AUTO_TEST_SUITE(gradient_copies_)

namespace bdata = boost::unit_test::data;
using namespace shoal;
using namespace shoal::test;

namespace {

struct seen final : actors::gradient_copies::events {
  void copied(model::unit_index u) override { units.push_back(u); }
  void copies_sent() override { ++sent; }
  void failed(const std::string& what, std::error_code) override {
    failures.push_back(what);
  }
  std::vector<model::unit_index> units;
  int sent = 0;
  std::vector<std::string> failures;
};
using shoal_of_copies = reduction_shoal<actors::gradient_copies, seen>;

/// Peers 0 and 1 are replicas; peer 2 follows units 1 and 2.
island_place followed() {
  island_place a;
  a.replicas = {pipeline({{0, 2}}, 0, 1), pipeline({{1, 2}}, 1, 2)};
  a.followers = {follower(2, 1, 3)};
  return a;
}

std::size_t sent_to(const network& wire, std::size_t n) {
  std::size_t out = 0;
  for (const auto& [k, t] : wire)
    out += std::get<1>(k) == peer(n) && t.from;
  return out;
}

} // namespace

BOOST_DATA_TEST_CASE(a_follower_gets_the_gradients_of_replica_0,
                     bdata::xrange(8), seed) {
  shoal_of_copies s(3, followed(), false, std::uint32_t(seed));
  for (std::uint64_t step : {1u, 2u}) {
    s[2].events = {};
    s.begin(step);
    for (const std::size_t n : {0u, 1u})
      for (const model::unit_index u : s[n].here.computed) {
        std::ranges::fill(s[n].gradient(u), float(10 * n + u + step));
        s[n].part.send(u);
      }
    BOOST_TEST(!s[0].part.sent());
    BOOST_TEST(s[1].part.sent()); // replica 1 owes nothing
    s.settle();
    BOOST_TEST(s.wire.empty());
    BOOST_TEST(s[0].part.sent());
    BOOST_TEST(s[0].events.sent == int(step)); // once a step
    std::ranges::sort(s[2].events.units);
    BOOST_TEST((s[2].events.units == std::vector<model::unit_index>{1, 2}));
    for (const model::unit_index u : {1u, 2u})
      for (const float g : s[2].gradient(u))
        BOOST_REQUIRE(g == float(u + step));
  }
}

BOOST_AUTO_TEST_CASE(a_step_does_not_wait_for_what_goes_to_an_arrival) {
  island_place a = followed();
  a.followers.clear();
  shoal_of_copies s(2, a, false, 1);
  s.begin(1);
  s[1].part.begin_arrival(2, peer(3));
  std::ranges::fill(s[1].gradient(2), 5.0f);
  s[1].part.send(2);
  BOOST_TEST(!s[1].part.sent()); // it has yet to be copied
  s.settle();
  BOOST_TEST(s[1].part.sent());
  BOOST_TEST(s[1].events.sent == 1);
  // What travels is a copy.
  BOOST_TEST(sent_to(s.wire, 3) == 1u);
  std::ranges::fill(s[1].gradient(2), 6.0f);
  const auto& bytes = s.wire.begin()->second.from->bytes;
  BOOST_TEST(*reinterpret_cast<const float*>(bytes.data()) == 5.0f);
}

BOOST_AUTO_TEST_CASE(an_arrival_that_cannot_keep_up_is_given_up) {
  island_place a = followed();
  a.followers.clear();
  shoal_of_copies s(2, a, false, 1);
  s[0].part.begin_arrival(2, peer(3));
  std::uint64_t step = 0;
  for (std::size_t i = 0; i < core::arrival_backlog_max + 3; ++i) {
    s.begin(++step);
    s[0].part.send(2);
    s.settle();
  }
  BOOST_TEST(sent_to(s.wire, 3) == core::arrival_backlog_max);
  // It asks again: what still waits is not held against it, nor counted when
  // it gets there.
  s[0].part.begin_arrival(2, peer(3));
  hub there(s.wire, peer(3));
  const auto& unit = s[0].here.states.at(2);
  for (std::uint64_t old = 1; old <= core::arrival_backlog_max; ++old)
    there.expect(peer(0),
                 s[0].here.tag(actors::link_kind::arrival_gradient, 0, 2, old),
                 s[0].buffers.get(actors::gradient_bytes(*unit)).shared(),
                 [](std::error_code) {});
  s.settle();
  BOOST_TEST(sent_to(s.wire, 3) == 0u);
  s.begin(++step);
  s[0].part.send(2);
  s.settle();
  BOOST_TEST(sent_to(s.wire, 3) == 1u);
}

BOOST_AUTO_TEST_CASE(a_failed_copy_is_reported) {
  shoal_of_copies s(3, followed(), false, 1);
  s.begin(1);
  s[2].links.cancel(7);
  s.settle();
  BOOST_TEST(s[2].events.failures.size() == 2u);
  BOOST_TEST(s[2].events.units.empty());
}

BOOST_AUTO_TEST_SUITE_END()
