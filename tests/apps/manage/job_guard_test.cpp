// tests/apps/manage/job_guard_test.cpp -- jobs whose loads have failed, and a node that
// does not always answer.
#include "apps/manage/job_guard.hpp"
#include "runtime/control/control.hpp"
#include "runtime/identity/identity.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "tests/runtime/control/asked_node.hpp"
#include "tests/support/scratch.hpp"

#include <boost/test/unit_test.hpp>

namespace job_guards {

using namespace shoal;

namespace {

struct node_with_clients {
  node_with_clients() {
    node.status_text = "{}";
    begin();
    BOOST_TEST_REQUIRE(!client.connect());
  }
  void begin() {
    served = std::make_unique<runtime::control>(
      runtime::control_socket(folder.path()), node);
  }
  static runtime::client_config at(const std::filesystem::path& folder) {
    runtime::client_config out;
    out.data_dir = folder;
    out.named = true;
    return out;
  }

  const test::scratch folder{"shoal-job-guard-test"};
  std::unique_ptr<runtime::job_journal> journal = runtime::open_job_journal({});
  tests::asked_node node{*journal};
  std::unique_ptr<runtime::control> served;
  runtime::client client{at(folder.path())};
};

using jobs = std::vector<core::job_id>;

} // namespace

} // namespace job_guards

BOOST_FIXTURE_TEST_SUITE(job_guards, job_guards::node_with_clients)

BOOST_AUTO_TEST_CASE(a_job_ends_unless_it_is_released) {
  apps::job_guard(client, 7).release();
  BOOST_TEST(node.stopped == jobs{});
  { const apps::job_guard guard(client, 7); }
  BOOST_TEST(node.stopped == jobs{7});
  apps::job_guard guard(client, 8);
  BOOST_TEST(guard.stop() == "");
  BOOST_TEST(guard.stop() == ""); // once
  BOOST_TEST((node.stopped == jobs{7, 8}));
}

BOOST_AUTO_TEST_CASE(a_lost_connection_is_made_again) {
  served.reset();
  begin();
  BOOST_TEST(apps::job_guard(client, 7).stop() == "");
  BOOST_TEST((node.stopped == jobs{7}));
}

BOOST_AUTO_TEST_CASE(a_job_that_is_gone_has_ended) {
  node.refusal = {runtime::reply_code::not_found, "no such job"};
  BOOST_TEST(apps::job_guard(client, 7).stop() == "");
}

BOOST_AUTO_TEST_CASE(a_job_that_the_node_does_not_know_yet_may_run) {
  node.refusal = {runtime::reply_code::refused, "no view"};
  BOOST_TEST(apps::job_guard(client, 7).stop().find("may still run")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(without_a_node_the_job_may_run) {
  served.reset();
  const std::string said = apps::job_guard(client, 7).stop();
  for (const char* part : {"job 0000000000000007 may still run", "no node",
                           "shoal cancel 0000000000000007"})
    BOOST_TEST(said.find(part) != std::string::npos, said);
  BOOST_TEST((node.stopped == jobs{}));
}

BOOST_AUTO_TEST_SUITE_END()
