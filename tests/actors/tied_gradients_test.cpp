// tests/actors/tied_gradients_test.cpp -- both ends of a model add the same.
#include "actors/reduction/tied_gradients.hpp"
#include "actors/reduction_fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

BOOST_AUTO_TEST_SUITE(tied_gradients_)

namespace bdata = boost::unit_test::data;
using namespace shoal;
using namespace shoal::test;

namespace {

struct seen final : actors::tied_gradients::events {
  void tied_added() override { ++added; }
  void failed(const std::string& what, std::error_code) override {
    failures.push_back(what);
  }
  int added = 0;
  std::vector<std::string> failures;
};
using shoal_of_ties = reduction_shoal<actors::tied_gradients, seen>;

constexpr model::unit_index head = 4;

/// Peers 0 and 1 run a pipeline, peer 2 a whole replica, 3 to 5 one with a
/// stage between.
island_place mixed() {
  island_place a;
  a.replicas = {pipeline({{0, 1}, {1, 2}}, 0, 1), pipeline({{2, 3}}, 1, 2),
                pipeline({{3, 1}, {4, 1}, {5, 1}}, 2, 3)};
  return a;
}

std::span<float> tied_of(reduction_peer& p, model::unit_index u) {
  const model::tied_pair pair = *p.here.layout->tied();
  return p.here.states.at(u)->tensor(p.gradient(u),
                                     u == 0 ? pair.embedding : pair.head);
}

} // namespace

BOOST_DATA_TEST_CASE(the_sum_of_both_sides_is_at_both, bdata::xrange(16),
                     seed) {
  shoal_of_ties s(6, mixed(), true, std::uint32_t(seed));
  for (std::uint64_t step : {1u, 2u}) {
    for (auto& p : s.all) {
      p->events = {};
      for (const model::unit_index u : {0u, head})
        if (p->here.computes(u))
          for (std::size_t i = 0; i < tied_of(*p, u).size(); ++i)
            tied_of(*p, u)[i] = (u == 0 ? 1.0f : 0.25f) * float(i + step);
    }
    s.begin(step);
    for (auto& p : s.all) // embeddings first: all wait for a head
      if (p->here.computes(0))
        p->part.summed(0);
    s.settle();
    for (auto& p : s.all)
      BOOST_TEST(p->events.added == 0);
    for (auto& p : s.all)
      if (p->here.computes(head))
        p->part.summed(head);
    s.settle();
    BOOST_TEST(s.wire.empty());
    for (auto& p : s.all) {
      const bool any = p->here.computes(0) || p->here.computes(head);
      BOOST_TEST(p->events.added == (any ? 1 : 0));
      for (const model::unit_index u : {0u, head})
        if (p->here.computes(u))
          for (std::size_t i = 0; i < tied_of(*p, u).size(); ++i)
            BOOST_REQUIRE(tied_of(*p, u)[i] == 1.25f * float(i + step));
    }
  }
}

BOOST_AUTO_TEST_CASE(only_the_ends_of_a_tied_model_are_concerned) {
  island_place alone;
  alone.replicas = {pipeline({{0, 3}}, 0, 1)};
  shoal_of_ties tied(1, alone, true, 1);
  BOOST_TEST(tied[0].part.concerns(0));
  BOOST_TEST(!tied[0].part.concerns(1));
  BOOST_TEST(tied[0].part.concerns(head));
  shoal_of_ties not_tied(1, alone, false, 1);
  BOOST_TEST(!not_tied[0].part.concerns(0));
  BOOST_TEST(!not_tied[0].part.concerns(head));
}

BOOST_AUTO_TEST_CASE(a_failed_transfer_is_reported_and_adds_nothing) {
  shoal_of_ties s(6, mixed(), true, 1);
  s.begin(1);
  s[0].links.cancel(7);
  s[0].part.summed(0);
  s.settle();
  BOOST_TEST(s[0].events.failures.size() == 1u);
  BOOST_TEST(s[0].events.added == 0);
}

BOOST_AUTO_TEST_SUITE_END()
