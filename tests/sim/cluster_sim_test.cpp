// tests/sim/cluster_sim_test.cpp -- claims about simulated shoals.
#define BOOST_TEST_MODULE sim
#include "cluster_sim.hpp"

#include <boost/test/unit_test.hpp>

using namespace shoal::sim;

BOOST_AUTO_TEST_SUITE(cluster_sim)

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_trace) {
  for (std::uint64_t seed : {1, 2, 3}) {
    cluster_options o;
    o.seed = seed;
    BOOST_TEST(run_cluster(o).trace == run_cluster(o).trace);
  }
}

BOOST_AUTO_TEST_CASE(four_that_start_together_are_one_view_within_2_s) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    cluster_options o;
    o.seed = seed;
    o.peers = 4;
    o.calm = true;
    cluster_result r = run_cluster(o);
    BOOST_TEST(r.failure == "", "seed " << seed << ": " << r.failure);
    BOOST_TEST(r.settled_after <= 2 * second, "seed " << seed);
  }
}

BOOST_AUTO_TEST_CASE(bugs_of_a_shell_are_found) {
  for (mutant bug :
       {mutant::votes_not_stored, mutant::stores_too_late,
        mutant::restarts_without_votes, mutant::lies_with_near_numbers,
        mutant::ends_at_one_word}) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      cluster_options o;
      o.seed = seed;
      o.bug = bug;
      found += !run_cluster(o).failure.empty();
    }
    BOOST_TEST(found > 0, "bug " << int(bug));
  }
}

BOOST_AUTO_TEST_SUITE_END()
