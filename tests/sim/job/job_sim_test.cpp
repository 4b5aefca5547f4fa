// tests/sim/job/job_sim_test.cpp -- many seeds of the job's simulation.
#define BOOST_TEST_MODULE job_sim
#include "tests/sim/job/job_sim.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_CASE(a_job_survives_whatever_its_peers_do) {
  std::uint64_t losses = 0;
  std::uint64_t forwards = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    auto r = shoal::sim::run_job_sim(seed, false);
    BOOST_TEST(r.ok, r.error << "; replay: job_sim --seed " << seed);
    losses += r.losses;
    forwards += r.forwards;
  }
  // The seeds reach what they are for.
  BOOST_TEST(losses > 10u);
  BOOST_TEST(forwards > 10u);
}
