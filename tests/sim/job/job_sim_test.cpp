// tests/sim/job/job_sim_test.cpp -- claims about simulated jobs. The many
// seeds run as the test job_seeds.
#define BOOST_TEST_MODULE job_sim
#include "tests/sim/job/job_sim.hpp"
#include "tests/sim/recorded_traces.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(job_sim)

BOOST_AUTO_TEST_CASE(the_seeds_reach_every_kind_of_event) {
  std::uint64_t bad = 0, diverged = 0, losses = 0, reverts = 0, given_up = 0;
  std::uint64_t rots = 0, noticed = 0, mended = 0;
  std::uint64_t shared = 0;
  std::uint64_t forwards = 0, arrivals = 0, arrived = 0, overtaken = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    auto r = shoal::sim::run_job_sim(seed, false);
    BOOST_TEST(r.ok, r.error << "; replay: job_sim --seed " << seed);
    losses += r.losses;
    bad += r.bad;
    diverged += r.diverged;
    reverts += r.reverts;
    given_up += r.given_up;
    shared += r.shared;
    forwards += r.forwards;
    arrivals += r.arrivals;
    arrived += r.arrived;
    overtaken += r.overtaken;
    rots += r.rots;
    noticed += r.noticed;
    mended += r.mended;
  }
  BOOST_TEST(losses > 2u);
  BOOST_TEST(bad > 100u);
  BOOST_TEST(diverged > 2u);
  BOOST_TEST(reverts > 2u);
  BOOST_TEST(given_up > 2u);
  BOOST_TEST(shared > 20u);
  BOOST_TEST(forwards > 2u);
  BOOST_TEST(arrivals > 50u);
  BOOST_TEST(arrived > 5u);
  BOOST_TEST(overtaken > 1u);
  BOOST_TEST(rots > 10u);
  BOOST_TEST(noticed > 3u);
  BOOST_TEST(mended > 3u);
}

/// The first seed that finds each mutant, and succeeds without it. For others:
/// `job_sim --mutant N --seeds 1000`.
BOOST_AUTO_TEST_CASE(each_mutant_is_found_by_its_seed) {
  using shoal::sim::job_mutant;
  const struct {
    job_mutant bug;
    std::uint64_t seed;
  } found_by[] = {{job_mutant::backlog_not_applied, 12},
                  {job_mutant::copy_too_late, 12},
                  {job_mutant::state_not_hashed, 4},
                  {job_mutant::share_passes_for_all, 21}};
  for (const auto& [bug, seed] : found_by) {
    BOOST_TEST(shoal::sim::run_job_sim(seed, false).ok);
    const auto r = shoal::sim::run_job_sim(seed, false, bug);
    BOOST_TEST(!r.ok, "bug " << int(bug) << " is not found");
    BOOST_TEST_MESSAGE(r.error);
  }
}

/// The job was drained, then steps were lost. A keeper's store got a checkpoint
/// of those steps afterwards, and the end must not wait for it to get a newer
/// one.
BOOST_AUTO_TEST_CASE(a_run_that_went_back_ends) {
  for (std::uint64_t seed : {20548, 22402}) {
    const auto r = shoal::sim::run_job_sim(seed, false);
    BOOST_TEST(r.ok, r.error << "; replay: job_sim --seed " << seed);
  }
}

BOOST_AUTO_TEST_CASE(the_same_seed_runs_the_same_way) {
  for (std::uint64_t seed : {1, 2, 3}) {
    const auto a = shoal::sim::run_job_sim(seed, false);
    BOOST_TEST(a.trace == shoal::sim::run_job_sim(seed, false).trace);
    BOOST_TEST(a.trace != shoal::sim::run_job_sim(seed + 1, false).trace);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(recorded_traces,
                      *boost::unit_test::precondition(shoal::sim::traces_hold))

const std::uint64_t of_jobs[] = {
  0x63d91006d2d4070f,
  0x34136d25c6c44213,
  0x928bbb031acd0692,
  0xfc3e86988452acfb,
  0xc1903ed718eae6be,
  0x57396459e0f00cd7,
  0xea411587ab94ab13,
  0x206b9d1682642404,
  0x84eb778a58304421,
  0xb714eafdb587664f,
  0x165ec8b1c791f8f0,
  0x6d6f1288e787bb17,
  0x7bed5c3a5b2d89f1,
  0x7e90449ed6e7020e,
  0xec03e74800ea9450,
  0x63edcdd831704bb0,
};

BOOST_AUTO_TEST_CASE(jobs_run_as_recorded) {
  shoal::sim::check_traces(of_jobs, [](auto seed) {
    return shoal::sim::run_job_sim(seed, false).trace;
  });
}

BOOST_AUTO_TEST_SUITE_END()
