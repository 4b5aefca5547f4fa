// tests/runtime/node/status_test.cpp -- what jobs wait for, as a node's status says.
#include "runtime/core/planning/plan.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "runtime/node/status/status.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(node_status)

using namespace shoal;
using namespace shoal::runtime;

namespace {

constexpr core::job_id job = 7;
constexpr core::epoch since = 24;

/// A member with one job that has a place.
struct fixture {
  fixture() {
    const core::peer_id me{1};
    in.self = me;
    view->number = since;
    view->members.emplace_back().id.peer = me;
    core::job_entry entry;
    entry.id = job;
    entry.name = "mine";
    entry.kind = core::job_kind::serve;
    entry.run_json = "{}";
    view->jobs.push_back(entry);
    core::island_place place;
    place.since = since;
    place.replicas.emplace_back().stages.push_back(
      core::stage_on({me, 0}, 0, 1));
    plan->jobs.push_back({job, {place}});
    in.view = view;
    in.plan = plan;
    in.journal = journal.get();
  }

  void waits(const std::string& text) {
    job_event e;
    e.text = text;
    e.epoch = since;
    e.waits = true;
    journal->add(job, e);
  }
  std::string shown() const { return waits_for(in, view->jobs.front()); }

  std::shared_ptr<core::view> view = std::make_shared<core::view>();
  std::shared_ptr<core::plan> plan = std::make_shared<core::plan>();
  std::unique_ptr<job_journal> journal = open_job_journal({});
  status_input in;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_served_model_waits_for_a_quorum_until_it_is_back,
                        fixture) {
  const std::string text = "no quorum for view 24: cannot reach b";
  in.waiting = text;
  waits(text);
  BOOST_TEST(shown() == text);
  in.waiting.clear();
  BOOST_TEST(shown() == "");
  BOOST_TEST(job_json(in, view->jobs.front()).find("no quorum")
             == std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(a_lost_quorum_hides_no_other_wait, fixture) {
  view->jobs.front().kind = core::job_kind::train;
  waits("waiting: for a checkpoint");
  in.waiting = "no quorum for view 24: cannot reach b";
  waits(in.waiting);
  BOOST_TEST(shown() == in.waiting);
  in.waiting.clear();
  BOOST_TEST(shown() == "for a checkpoint");
}

BOOST_FIXTURE_TEST_CASE(a_pipeline_that_is_ready_waits_for_nothing, fixture) {
  waits("b cannot load stage 2 of 2");
  BOOST_TEST(shown() == "b cannot load stage 2 of 2");
  in.serving.push_back({job, "mine", 0, 0, {{0, false}}});
  BOOST_TEST(shown() == "b cannot load stage 2 of 2");
  in.serving.front().pipelines.front().ready = true;
  BOOST_TEST(shown() == "");
}

BOOST_FIXTURE_TEST_CASE(what_a_former_place_waited_for_is_over, fixture) {
  waits("b cannot load stage 2 of 2");
  plan->jobs.front().islands.front().since = since + 1;
  BOOST_TEST(shown() == "");
}

BOOST_AUTO_TEST_SUITE_END()
