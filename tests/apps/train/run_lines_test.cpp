// tests/apps/train/run_lines_test.cpp -- what `train` advises.
#include "apps/train/run_lines.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(run_lines)

using namespace shoal::apps;

/// It named the peer that had left last: nobody answers there.
BOOST_AUTO_TEST_CASE(a_run_goes_on_by_the_options_that_it_had) {
  node_address named;
  named.cluster_key = "key";
  BOOST_TEST(resume_text("out", named, named)
             == "`shoal train out --resume --cluster-key key`");
  node_address moved = named;
  moved.peers = {"10.0.0.2:18372"};
  BOOST_TEST(resume_text("out", named, moved)
             == "`shoal train out --resume --cluster-key key` (with --peer "
                "10.0.0.2:18372 while that node runs)");
}

BOOST_AUTO_TEST_SUITE_END()
