// tests/runtime/core/served_versions_test.cpp -- which versions of its model a
// served job has.
#include "runtime/core/view_changes.hpp"
#include "tests/runtime/core/cluster/cluster_pair.hpp"

#include <boost/test/unit_test.hpp>

namespace cluster_versions {

using namespace shoal::tests;

} // namespace cluster_versions

BOOST_FIXTURE_TEST_SUITE(cluster_versions, cluster_versions::pair_of_nodes)

BOOST_AUTO_TEST_CASE(a_served_job_takes_newer_versions_beside_one_it_keeps) {
  begin(a);
  job_entry j;
  j.id = 4;
  j.kind = job_kind::serve;
  j.origin_step = 10;
  j.origin.fill(1);
  give(a, submit_job{j});
  auto steps = [&] {
    std::vector<std::uint64_t> out;
    for (const model_version& v :
         served_versions(*find_job(a.core->current(), 4)))
      out.push_back(v.step);
    return out;
  };
  auto version = [](std::uint64_t step) {
    model_version v{step, {}};
    v.manifest.fill(std::uint8_t(step));
    return v;
  };
  using list = std::vector<std::uint64_t>;
  BOOST_TEST(steps() == list{10}, boost::test_tools::per_element());
  give(a, serve_version{4, version(20), 10});
  BOOST_TEST(steps() == (list{20, 10}), boost::test_tools::per_element());
  BOOST_TEST(
    (find_job(a.core->current(), 4)->versions[1].manifest == j.origin));
  const epoch number = a.core->current().number;
  give(a, serve_version{4, version(20), 10}); // said again
  give(a, serve_version{4, version(15), 20}); // an older one
  give(a, serve_version{4, version(30), 11}); // beside one that is not there
  BOOST_TEST(steps() == (list{20, 10}), boost::test_tools::per_element());
  BOOST_TEST(a.core->current().number == number);
  give(a, serve_version{4, version(30), 10}); // 20 could not be loaded
  BOOST_TEST(steps() == (list{30, 10}), boost::test_tools::per_element());
  give(a, serve_version{4, version(40), 30});
  BOOST_TEST(steps() == (list{40, 30}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_served_job_lets_its_former_version_go) {
  begin(a);
  job_entry j;
  j.id = 4;
  j.kind = job_kind::serve;
  j.origin_step = 10;
  give(a, submit_job{j});
  const model_version first{10, {}};
  model_version second{20, {}}, other{20, {}};
  second.manifest.fill(20);
  give(a, serve_version{4, first, 10}); // there is no other one
  BOOST_TEST(find_job(a.core->current(), 4)->versions.empty());
  give(a, serve_version{4, second, 10});
  const view before = a.core->current();
  give(a, serve_version{4, first, 10}); // not the newest
  give(a, serve_version{4, other, 20}); // another one of that step
  BOOST_TEST(a.core->current().number == before.number);
  give(a, serve_version{4, second, 20});
  BOOST_TEST((find_job(a.core->current(), 4)->versions
              == std::vector<model_version>{second}));
  BOOST_TEST(changes_text(before, a.core->current())
             == "job  serves only step 20 now");
  give(a, serve_version{4, {30, {}}, 20});
  BOOST_TEST(find_job(a.core->current(), 4)->versions.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_job_that_trains_has_no_versions) {
  begin(a);
  job_entry j;
  j.id = 4;
  give(a, submit_job{j});
  give(a, serve_version{4, {20, {}}, 0});
  BOOST_TEST(find_job(a.core->current(), 4)->versions.empty());
}

BOOST_AUTO_TEST_SUITE_END()
