// tests/actors/step_losses_test.cpp -- every head, and all its followers, have
// all losses.
#include "actors/reduction/step_losses.hpp"
#include "actors/reduction_fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

BOOST_AUTO_TEST_SUITE(step_losses_)

namespace bdata = boost::unit_test::data;
using namespace shoal;
using namespace shoal::test;

namespace {

struct seen final : actors::step_losses::events {
  void losses_complete() override { ++complete; }
  void failed(const std::string& what, std::error_code) override {
    failures.push_back(what);
  }
  int complete = 0;
  std::vector<std::string> failures;
};
using shoal_of_losses = reduction_shoal<actors::step_losses, seen>;

/// Peer 1 has the head of replicas 0 and 2, peer 3 that of replica 1; peer 4
/// follows the head, peer 5 unit 0.
island_place three_replicas() {
  island_place a;
  a.replicas = {pipeline({{0, 1}, {1, 1}}, 0, 2),
                pipeline({{2, 1}, {3, 1}}, 2, 3),
                pipeline({{0, 1}, {1, 1}}, 3, 5)};
  a.followers = {follower(5, 0, 1), follower(4, 3, 4)};
  return a;
}

double loss_of(std::uint64_t step, std::uint32_t m) {
  return double(step) + m / 8.0;
}

/// What a peer computes of a step.
void take(shoal_of_losses& s, std::size_t n, std::uint64_t step,
          std::initializer_list<std::uint32_t> microbatches) {
  std::map<std::uint32_t, actors::microbatch_loss> own;
  for (const std::uint32_t m : microbatches)
    own[m] = {loss_of(step, m), 100 * step + m};
  s[n].part.take(own);
}

} // namespace

BOOST_DATA_TEST_CASE(heads_and_their_followers_have_all, bdata::xrange(16),
                     seed) {
  shoal_of_losses s(6, three_replicas(), false, std::uint32_t(seed));
  for (std::uint64_t step : {1u, 2u}) {
    for (auto& p : s.all)
      p->events = {};
    s.begin(step);
    take(s, 3, step, {2});
    s.settle();
    for (const std::size_t n : {1u, 3u, 4u})
      BOOST_TEST(!s[n].part.complete()); // peer 1's are missing
    take(s, 1, step, {0, 1, 3, 4});
    s.settle();
    BOOST_TEST(s.wire.empty());
    for (const std::size_t n : {1u, 3u, 4u}) {
      BOOST_TEST(s[n].part.complete());
      BOOST_TEST(s[n].events.complete == 1);
      BOOST_REQUIRE(s[n].part.all().size() == 5u);
      for (std::uint32_t m = 0; m < 5; ++m) {
        BOOST_TEST(s[n].part.all()[m].loss == loss_of(step, m));
        BOOST_TEST(s[n].part.all()[m].sample == 100 * step + m);
      }
    }
    for (const std::size_t n : {0u, 2u, 5u}) { // not told
      BOOST_TEST(s[n].part.complete());
      BOOST_TEST(s[n].part.all().empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(followers_of_copies_are_not_told) {
  island_place a = three_replicas();
  a.copy_every = 4;
  shoal_of_losses s(4, a, false, 1);
  s.begin(1);
  take(s, 1, 1, {0, 1, 3, 4});
  take(s, 3, 1, {2});
  s.settle();
  BOOST_TEST(s.wire.empty());
  BOOST_TEST(s[1].part.complete());
  BOOST_TEST(s[3].part.complete());
}

BOOST_AUTO_TEST_CASE(a_failed_transfer_is_reported_and_completes_nothing) {
  shoal_of_losses s(6, three_replicas(), false, 1);
  s.begin(1);
  s[4].links.cancel(7);
  s.settle();
  BOOST_TEST(s[4].events.failures.size() == 1u);
  BOOST_TEST(!s[4].part.complete());
}

BOOST_AUTO_TEST_SUITE_END()
