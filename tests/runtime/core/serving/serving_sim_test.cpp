// tests/runtime/core/serving/serving_sim_test.cpp -- by seed, each stream of a served
// model is compared with one that is alone (serving_world.hpp).
#include "tests/runtime/core/serving/serving_world.hpp"

BOOST_AUTO_TEST_SUITE(serving_sim)

using namespace shoal::core;
using namespace shoal::core::serving_sim;

namespace {

struct totals {
  std::uint64_t wrong = 0, deaths = 0, lost = 0, preempted = 0, reused = 0,
                reused_windows = 0, ended = 0, scored = 0, guessed = 0,
                accepted = 0, retries = 0, expelled = 0, ill_expelled = 0,
                complete = 0, known = 0, waited = 0, pooled = 0;
  std::string first_wrong;
};

totals run_seeds(std::uint64_t first, std::uint64_t count,
                 planted bug = planted::nothing, ailment ails = ailment::none) {
  totals t;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    world w(seed, bug, ails);
    w.run(12, 1500);
    if (!w.wrong.empty() && t.wrong++ == 0)
      t.first_wrong = "seed " + std::to_string(seed) + ": " + w.wrong;
    t.deaths += w.deaths;
    t.lost += w.lost;
    t.preempted += w.preempted;
    t.reused += w.reused;
    t.reused_windows += w.reused_windows;
    t.ended += w.ended;
    t.scored += w.scored;
    t.guessed += w.guessed;
    t.accepted += w.accepted;
    t.retries += w.retries;
    t.expelled += w.expelled;
    t.ill_expelled += w.ill_expelled;
    t.complete += w.complete;
    t.known += w.known;
    t.waited += w.waited;
    t.pooled += w.pooled;
  }
  return t;
}

} // namespace

BOOST_AUTO_TEST_CASE(each_stream_equals_one_that_is_alone) {
  const totals t = run_seeds(1, 1600);
  BOOST_TEST(t.wrong == 0u, t.first_wrong);
  // What was to be tried has happened.
  BOOST_TEST(t.deaths > 100u);
  BOOST_TEST(t.lost > 100u);
  BOOST_TEST(t.reused > 100u);
  BOOST_TEST(t.reused_windows > 100u);
  BOOST_TEST(t.preempted > 0u);
  BOOST_TEST(t.ended > 2000u);
  BOOST_TEST(t.scored > 1000u);
  BOOST_TEST(t.accepted > 1000u);
  BOOST_TEST(t.guessed > t.accepted + 100u);
  BOOST_TEST(t.complete > 20u);
  BOOST_TEST(t.known > 100u);
  BOOST_TEST(t.waited > 100u);
  BOOST_TEST(t.pooled > 500u);
}

BOOST_AUTO_TEST_CASE(planted_bugs_are_found) {
  for (const planted bug :
       {planted::page_freed_early, planted::window_too_short,
        planted::guess_kept, planted::chosen_forgotten, planted::sum_kept,
        planted::request_lost}) {
    std::uint64_t seed = 1; // the last one needs some hundreds
    while (seed < 3000 && run_seeds(seed, 1, bug).wrong == 0)
      ++seed;
    BOOST_TEST(seed < 3000u, "bug " << int(bug));
  }
}

// A peer that ails is found while it answers, and no stream gets another token for it.
BOOST_AUTO_TEST_CASE(a_device_that_hangs_is_passed_over) {
  const totals t = run_seeds(1, 300, planted::nothing, ailment::hangs);
  BOOST_TEST(t.wrong == 0u, t.first_wrong);
  BOOST_TEST(t.ill_expelled > 100u);
  BOOST_TEST(t.expelled == t.ill_expelled);
}

BOOST_AUTO_TEST_CASE(hidden_states_that_never_come_begin_the_pipeline_anew) {
  const totals t = run_seeds(1, 300, planted::nothing, ailment::loses);
  BOOST_TEST(t.wrong == 0u, t.first_wrong);
  BOOST_TEST(t.retries > 100u);
  BOOST_TEST(t.ill_expelled > 30u);
  BOOST_TEST(t.expelled < 2 * t.ill_expelled); // the other end of the link
}

BOOST_AUTO_TEST_CASE(changed_hidden_states_are_not_computed_with) {
  const totals t = run_seeds(1, 300, planted::nothing, ailment::changes);
  BOOST_TEST(t.wrong == 0u, t.first_wrong);
  BOOST_TEST(t.retries > 60u);
  BOOST_TEST(t.ill_expelled > 30u);
  BOOST_TEST(t.expelled == t.ill_expelled);
}

BOOST_AUTO_TEST_CASE(planted_bugs_about_ailing_peers_are_found) {
  for (const auto& [bug, ails] :
       {std::pair(planted::stall_unwatched, ailment::hangs),
        std::pair(planted::stall_unwatched, ailment::loses),
        std::pair(planted::digest_unchecked, ailment::changes)}) {
    std::uint64_t seed = 1;
    while (seed < 300 && run_seeds(seed, 1, bug, ails).wrong == 0)
      ++seed;
    BOOST_TEST(seed < 300u, "bug " << int(bug));
  }
}

BOOST_AUTO_TEST_SUITE_END()
