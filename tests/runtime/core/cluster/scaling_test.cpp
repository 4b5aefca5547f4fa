// tests/runtime/core/cluster/scaling_test.cpp -- the number of a served model's
// pipelines is agreed, and of several proposals one wins.
#include "tests/runtime/core/cluster/cluster_pair.hpp"

#include <boost/test/unit_test.hpp>

namespace cluster_scaling {

using namespace shoal::tests;

namespace {

struct served : pair_of_nodes {
  served() {
    begin(a);
    begin(b);
    link();
    job_entry j;
    j.id = 4;
    j.kind = job_kind::serve;
    give(a, submit_job{j});
    j.id = 5;
    j.kind = job_kind::train;
    give(a, submit_job{j});
    run(1000 * ms);
    BOOST_TEST_REQUIRE(together());
  }

  const job_entry& job(node& n, job_id id = 4) {
    return *find_job(n.core->current(), id);
  }
  epoch mark() { return marked(job(a), mark_kind::scaled, 0); }
};

} // namespace

} // namespace cluster_scaling

BOOST_FIXTURE_TEST_SUITE(cluster_scaling, cluster_scaling::served)

BOOST_AUTO_TEST_CASE(all_peers_agree_on_the_number) {
  BOOST_TEST(islands_of(job(a)) == 1u);
  give(b, scale_job{4, 2, 0});
  run(1000 * ms);
  for (node* n : {&a, &b})
    BOOST_TEST(islands_of(job(*n)) == 2u);
  BOOST_TEST(mark() == a.core->current().number);
  give(a, scale_job{4, 1, mark()});
  run(1000 * ms);
  for (node* n : {&a, &b})
    BOOST_TEST(islands_of(job(*n)) == 1u);
}

BOOST_AUTO_TEST_CASE(a_proposal_of_a_number_that_was_changed_is_void) {
  give(a, scale_job{4, 2, 0});
  give(b, scale_job{4, 3, 0}); // at once: one of them wins
  run(1000 * ms);
  const std::uint32_t agreed = islands_of(job(a));
  BOOST_TEST((agreed == 2 || agreed == 3));
  BOOST_TEST(islands_of(job(b)) == agreed);
  const epoch number = a.core->current().number, since = mark();
  BOOST_TEST(since != 0u);
  give(a, scale_job{4, 7, 0});          // of the number before
  give(b, scale_job{4, 7, since + 1});  // of none
  give(b, scale_job{4, agreed, since}); // as it is
  give(b, scale_job{4, 0, since});
  run(1000 * ms);
  BOOST_TEST(a.core->current().number == number);
}

BOOST_AUTO_TEST_CASE(only_served_models_that_run_have_it) {
  const epoch number = a.core->current().number;
  give(a, scale_job{5, 2, 0}); // it trains
  give(a, scale_job{6, 2, 0}); // there is none
  run(1000 * ms);
  BOOST_TEST(a.core->current().number == number);
  give(a, set_job_state{4, job_state::cancelled, 3});
  run(1000 * ms);
  give(a, scale_job{4, 2, 0});
  run(1000 * ms);
  BOOST_TEST(islands_of(job(a)) == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
