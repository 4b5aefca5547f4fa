// tests/actors/replay_test.cpp -- a run in which peers die and return, run
// again undisturbed under the views that it went through: the same bits.
#include "actors/job_fixture.hpp"
#include "runtime/core/training/detours.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>

namespace bdata = boost::unit_test::data;
using namespace shoal::test;

namespace {

struct layout {
  std::int64_t replicas, stages;
  std::size_t peers;
};
std::ostream& operator<<(std::ostream& out, const layout& l) {
  return out << l.replicas << " x " << l.stages << " on " << l.peers;
}
const layout layouts[] = {{2, 1, 2}, {2, 2, 4}, {3, 2, 6}, {2, 3, 6}};

run_config long_run(const layout& l, const char* schedule) {
  run_config run = small_run(l.replicas, l.stages);
  run.schedule = schedule;
  run.steps = 24;
  run.copy_every = 1;
  run.validation_freq = 9;
  run.checkpoint_interval = 7;
  return run;
}

/// State so large that it moves while steps run; sums cost nothing.
void prepare(small_shoal& s) {
  s.entry().block_state_bytes = 500'000'000;
  s.set_network({"fast", 1'000, 1'000'000'000'000});
}

} // namespace

BOOST_AUTO_TEST_SUITE(replay)

BOOST_DATA_TEST_CASE(the_views_of_a_run_give_its_bits,
                     bdata::make(layouts) * bdata::make({"1f1b", "zero_bubble"})
                       * bdata::xrange(0, 600, 67),
                     l, schedule, when) {
  const run_config run = long_run(l, schedule);
  small_shoal s(l.peers, run, some_text());
  prepare(s);
  s.submit();
  while (s.record(0).losses.size() < 2)
    s.step();
  const std::size_t victim = 1 + std::size_t(when) % (l.peers - 1);
  if (!die_and_return(s, victim, when))
    return;
  const auto views = s.past(0);
  const auto want = s.record(0);
  for (const past_view& p : views)
    BOOST_TEST_MESSAGE("since " << p.place.since << " from step "
                                << p.first_step << " detour "
                                << shoal::core::makes_detour(p.place.replicas));

  small_shoal again(l.peers, run, some_text());
  prepare(again);
  BOOST_REQUIRE(again.replay(views));
  const auto got = again.record(0);
  BOOST_TEST(got.losses == want.losses, boost::test_tools::per_element());
  BOOST_TEST(got.norms == want.norms, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
