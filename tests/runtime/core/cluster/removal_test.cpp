// tests/runtime/core/cluster/removal_test.cpp -- jobs that have ended are taken
// off the list, and never come back.
#include "tests/runtime/core/cluster/cluster_pair.hpp"

#include <boost/test/unit_test.hpp>

namespace cluster_removal {

using namespace shoal::tests;

namespace {

/// `a` votes; `b`, which does not, forwards what it wishes.
struct removal : pair_of_nodes {
  std::vector<change_request> forwarded; ///< what `b` has asked for

  void meet() {
    b.c.self.voter = false;
    begin(a);
    begin(b);
    link();
    run(400 * ms);
    BOOST_TEST_REQUIRE(together());
    BOOST_TEST_REQUIRE(!find_member(a.core->current(), peer(2))->voter);
  }

  /// At `a`, which is alone.
  void end_at_once(job_id id, job_kind kind) {
    job_entry j;
    j.id = id;
    j.kind = kind;
    give(a, submit_job{j});
    give(a, set_job_state{j.id, job_state::done, 1});
    now += ms;
  }

  void submit(node& n, job_id id) {
    job_entry j;
    j.id = id;
    j.name = "job";
    give(n, submit_job{j});
    for (auto& [to, e] : wire)
      if (auto* r = std::get_if<change_request>(&e.what))
        forwarded.push_back(*r);
  }

  void end(job_id id) {
    give(a, set_job_state{id, job_state::cancelled, 0});
    run(200 * ms);
    BOOST_TEST_REQUIRE(find_job(a.core->current(), id) != nullptr);
    BOOST_TEST_REQUIRE(
      (find_job(a.core->current(), id)->state == job_state::cancelled));
  }

  void remove(job_id id) {
    give(a, remove_job{id});
    run(200 * ms);
    BOOST_TEST_REQUIRE(find_job(a.core->current(), id) == nullptr);
  }
};

} // namespace

} // namespace cluster_removal

BOOST_FIXTURE_TEST_SUITE(cluster_removal, cluster_removal::removal)

BOOST_AUTO_TEST_CASE(an_ended_job_is_taken_off_every_list) {
  meet();
  submit(b, 7);
  submit(a, 8);
  run(400 * ms);
  end(7);
  give(b, remove_job{7});
  run(400 * ms);
  for (node* n : {&a, &b}) {
    BOOST_TEST(find_job(n->core->current(), 7) == nullptr);
    BOOST_TEST(find_job(n->core->current(), 8) != nullptr);
  }
}

BOOST_AUTO_TEST_CASE(a_job_that_runs_or_is_unknown_is_not_removed) {
  meet();
  submit(a, 7);
  run(400 * ms);
  const epoch before = a.core->current().number;
  a.said.clear();
  for (job_id id : {7, 9})
    give(a, remove_job{id});
  run(400 * ms);
  BOOST_TEST(a.count<rejected>() == 2u);
  BOOST_TEST(a.core->current().number == before);
  BOOST_TEST(find_job(a.core->current(), 7) != nullptr);
}

BOOST_AUTO_TEST_CASE(a_submission_that_comes_late_does_not_bring_it_back) {
  meet();
  submit(b, 7);
  run(ms);
  BOOST_TEST_REQUIRE(!forwarded.empty());
  run(400 * ms);
  end(7);
  remove(7);
  give(a, received{peer(2), forwarded.front()});
  run(400 * ms);
  BOOST_TEST(find_job(a.core->current(), 7) == nullptr);
  submit(a, 7);
  run(400 * ms);
  BOOST_TEST(find_job(a.core->current(), 7) == nullptr);
}

BOOST_AUTO_TEST_CASE(a_peer_that_has_missed_it_all_does_not_submit_it_again) {
  meet();
  submit(b, 7);
  run(ms);
  wire.clear();
  linked = false; // b hears nothing of it, and asks on
  run(100 * ms);
  BOOST_TEST_REQUIRE(find_job(a.core->current(), 7) != nullptr);
  end(7);
  remove(7);
  linked = true;
  run(2000 * ms);
  BOOST_TEST((b.core->current() == a.core->current()));
  BOOST_TEST(find_job(a.core->current(), 7) == nullptr);
}

BOOST_AUTO_TEST_CASE(nor_do_jobs_that_the_list_has_forgotten) {
  meet();
  submit(b, 1);
  run(ms);
  BOOST_TEST_REQUIRE(!forwarded.empty());
  run(400 * ms);
  end(1);
  const job_id last = jobs_removed_max + 20;
  for (job_id id = 2; id <= last; ++id) {
    submit(a, id);
    run(60 * ms);
    end(id);
    if (id == jobs_kept_max + 2) { // by then the list has forgotten the first
      give(a, received{peer(2), forwarded.front()});
      run(60 * ms);
      BOOST_TEST(find_job(a.core->current(), 1) == nullptr);
    }
  }
  BOOST_TEST(a.core->current().jobs.size() == jobs_kept_max);
  BOOST_TEST(a.core->current().removed.size() <= jobs_removed_max);
}

BOOST_AUTO_TEST_CASE(ended_jobs_are_forgotten_oldest_first) {
  begin(a);
  for (job_id id = 1; id <= jobs_kept_max + 4; ++id)
    end_at_once(1000 - id, job_kind::train);
  BOOST_TEST(a.core->current().jobs.size() == jobs_kept_max);
  BOOST_TEST(find_job(a.core->current(), 999) == nullptr);
  BOOST_TEST(find_job(a.core->current(), 1000 - jobs_kept_max - 4) != nullptr);
}

// Each chat with a model of a folder is a job, too.
BOOST_AUTO_TEST_CASE(jobs_that_served_push_no_results_off_the_list) {
  begin(a);
  for (job_id id = 1; id <= jobs_kept_max / 2 + 1; ++id)
    end_at_once(id, job_kind::train);
  for (job_id id = 100; id < 100 + 3 * jobs_kept_max; ++id)
    end_at_once(id, job_kind::serve);
  BOOST_TEST(a.core->current().jobs.size() == jobs_kept_max);
  BOOST_TEST(find_job(a.core->current(), 1) == nullptr);
  for (job_id id = 2; id <= jobs_kept_max / 2 + 1; ++id)
    BOOST_TEST(find_job(a.core->current(), id) != nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
