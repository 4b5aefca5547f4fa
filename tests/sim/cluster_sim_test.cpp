// tests/sim/cluster_sim_test.cpp -- claims about simulated shoals.
#define BOOST_TEST_MODULE sim
#include "cluster_sim.hpp"
#include "recorded_traces.hpp"

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

BOOST_AUTO_TEST_CASE(numbers_of_pipelines_are_agreed_among_faults) {
  std::uint64_t scalings = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    cluster_options o;
    o.seed = seed;
    o.scales = true;
    cluster_result r = run_cluster(o);
    BOOST_TEST(r.failure == "", "seed " << seed << ": " << r.failure);
    scalings += r.scalings;
  }
  BOOST_TEST(scalings > 80u);
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

BOOST_AUTO_TEST_SUITE(recorded_traces,
                      *boost::unit_test::precondition(traces_hold))

const std::uint64_t of_shoals[] = {
  0xf859e607eae735fd, 0xdfde018aeb0aadf9, 0x1a911aa65a647a06,
  0x3e189eddcdb1d9ed, 0x8f149aefba603230, 0x59798810dc5177ed,
  0x5a4b953297121cc3, 0x7f83286a06a5041c, 0xba8a29c6321118ff,
  0x9d649aca4eb7f075, 0x88a47cd66dee1f21, 0x1b755ca70d82712f,
  0x6410f75a4ad001b4, 0xb13ae3aaf51ffbee, 0x7d64f575fb46f1cc,
  0x2fa9e4220dd4a127,
};

BOOST_AUTO_TEST_CASE(shoals_run_as_recorded) {
  check_traces(of_shoals, [](auto seed) {
    cluster_options o;
    o.seed = seed;
    return run_cluster(o).trace;
  });
}

BOOST_AUTO_TEST_SUITE_END()
