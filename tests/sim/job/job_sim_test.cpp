// tests/sim/job/job_sim_test.cpp -- claims about simulated jobs. The many
// seeds run as the test job_seeds.
#define BOOST_TEST_MODULE job_sim
#include "tests/sim/job/job_sim.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(job_sim)

BOOST_AUTO_TEST_CASE(the_seeds_reach_what_they_are_for) {
  std::uint64_t losses = 0, reverts = 0;
  std::uint64_t forwards = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    auto r = shoal::sim::run_job_sim(seed, false);
    BOOST_TEST(r.ok, r.error << "; replay: job_sim --seed " << seed);
    losses += r.losses;
    reverts += r.reverts;
    forwards += r.forwards;
  }
  BOOST_TEST(losses > 2u);
  BOOST_TEST(reverts > 2u);
  BOOST_TEST(forwards > 2u);
}

BOOST_AUTO_TEST_CASE(the_same_seed_runs_the_same_way) {
  for (std::uint64_t seed : {1, 2, 3}) {
    auto a = shoal::sim::run_job_sim(seed, false);
    auto b = shoal::sim::run_job_sim(seed, false);
    BOOST_TEST(a.steps == b.steps);
    BOOST_TEST(a.views == b.views);
    BOOST_TEST(a.forwards == b.forwards);
  }
}

BOOST_AUTO_TEST_SUITE_END()
