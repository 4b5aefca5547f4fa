// tests/actors/replay_test.cpp -- a run in which peers die and return, run
// again undisturbed under the views that it went through: the same bits.
#include "tests/actors/job_fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>

BOOST_AUTO_TEST_SUITE(replay)

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

run_config long_run(const layout& l, bool tied, const char* schedule) {
  run_config run = small_run(l.replicas, l.stages, tied);
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

/// Number of replays: all, and those that had to begin anew.
std::size_t replays = 0, lost = 0;

/// Runs `run` again under the views of `s`, as logged by a node. In a replay
/// views come between two steps; a peer that dies then may have state that
/// others already had when it died in the run, within a step.
void require_same_bits(const small_shoal& s, std::size_t peers,
                       const run_config& run) {
  const auto want = s.record(0);
  small_shoal again(peers, run, some_text());
  prepare(again);
  BOOST_REQUIRE(again.replay(s.past(0)));
  const auto got = again.record(0);
  ++replays;
  if (got.repeated + got.lost_states > 0) {
    ++lost;
    return;
  }
  BOOST_TEST(got.losses == want.losses, boost::test_tools::per_element());
  BOOST_TEST(got.norms == want.norms, boost::test_tools::per_element());
}

} // namespace

/// A death and a return, at any message.
BOOST_DATA_TEST_CASE(the_views_of_a_run_give_its_bits,
                     bdata::make(layouts) * bdata::make({false, true})
                       * bdata::xrange(0, 600, 201),
                     l, tied, when) {
  const run_config run =
    long_run(l, tied, when % 2 == 0 ? "1f1b" : "zero_bubble");
  small_shoal s(l.peers, run, some_text());
  prepare(s);
  s.submit();
  while (s.record(0).losses.size() < 2)
    s.step();
  const std::size_t victim = 1 + std::size_t(when) % (l.peers - 1);
  if (die_and_return(s, victim, when))
    require_same_bits(s, l.peers, run);
}

/// Several deaths and returns, some of them while others stand in.
BOOST_DATA_TEST_CASE(the_views_of_many_deaths_give_the_bits,
                     bdata::make(layouts) * bdata::xrange(1, 5), l, seed) {
  const run_config run =
    long_run(l, seed % 2 == 0, seed % 3 == 0 ? "zero_bubble" : "1f1b");
  small_shoal s(l.peers, run, some_text());
  prepare(s);
  s.submit();
  deaths_and_returns(s, l.peers, seed, 6, 1);
  BOOST_REQUIRE(s.finish());
  require_same_bits(s, l.peers, run);
}

/// Else the cases above have compared nothing.
BOOST_AUTO_TEST_CASE(most_replays_have_all_state) {
  BOOST_TEST(4 * lost <= replays);
}

BOOST_AUTO_TEST_SUITE_END()
