// tests/runtime/core/cluster/draining_test.cpp -- that a job is to end after its
// step is agreed, so that no death loses the wish.
#include "tests/runtime/core/cluster/cluster_pair.hpp"

#include <boost/test/unit_test.hpp>

namespace cluster_draining {

using namespace shoal::tests;

} // namespace cluster_draining

BOOST_FIXTURE_TEST_SUITE(cluster_draining, cluster_draining::pair_of_nodes)

BOOST_AUTO_TEST_CASE(a_job_that_is_to_end_is_marked_so_until_it_has_ended) {
  begin(a);
  begin(b);
  link();
  job_entry j;
  j.id = 4;
  give(a, submit_job{j});
  run(1000 * ms);
  BOOST_TEST_REQUIRE(together());
  BOOST_TEST(!is_draining(*find_job(a.core->current(), 4)));
  give(b, drain_job{4});
  give(b, drain_job{5}); // there is none
  run(1000 * ms);
  for (node* n : {&a, &b})
    BOOST_TEST(is_draining(*find_job(n->core->current(), 4)));
  const epoch number = a.core->current().number;
  give(a, drain_job{4}); // said again
  run(1000 * ms);
  BOOST_TEST(a.core->current().number == number);
  give(a, set_job_state{4, job_state::cancelled, 3});
  run(1000 * ms);
  BOOST_TEST(!is_draining(*find_job(b.core->current(), 4)));
  give(a, drain_job{4}); // it has ended
  run(1000 * ms);
  BOOST_TEST(a.core->current().number == number + 1);
}

BOOST_AUTO_TEST_SUITE_END()
