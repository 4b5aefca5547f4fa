// tests/runtime/core/cluster/force_test.cpp -- a shoal that was made by force
// from another one, and the return of the other one's peers.
#include "tests/runtime/core/cluster/cluster_three.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <string>

namespace cluster_force {

using namespace shoal::tests;

namespace {

job_entry job(job_id id) {
  job_entry j;
  j.id = id;
  return j;
}

struct forced : three_nodes {
  shoal_id old{}, made{};

  /// a, b and c are a shoal that runs job 5.
  void together_with_a_job() {
    for (node* n : nodes())
      begin(*n);
    link(a, b);
    link(a, c);
    link(b, c);
    run(1000 * ms);
    give(a, submit_job{job(5)});
    run(500 * ms);
    BOOST_REQUIRE(a.core->current().members.size() == 3u);
    BOOST_REQUIRE(a.core->current() == b.core->current());
    BOOST_REQUIRE(a.core->current() == c.core->current());
    BOOST_REQUIRE(find_job(c.core->current(), 5) != nullptr);
    old = a.core->current().shoal;
  }

  /// b and c die, and a goes on by force.
  void force_after_two_deaths() {
    together_with_a_job();
    stop(b);
    stop(c);
    force();
  }

  void force() {
    run(3000 * ms);
    BOOST_REQUIRE((a.core->phase() == phase::waiting));
    give(a, recover_force{});
    made = a.core->current().shoal;
    BOOST_REQUIRE((made != old));
    run(1000 * ms);
  }

  bool all_in(const shoal_id& shoal) const {
    return in(a, shoal) && in(b, shoal) && in(c, shoal);
  }

  static bool said(const node& n, const std::string& words) {
    return std::ranges::any_of(n.said, [&](const action& x) {
      auto* line = std::get_if<cluster::log>(&x);
      return line != nullptr && line->text.find(words) != std::string::npos;
    });
  }
};

} // namespace

} // namespace cluster_force

BOOST_FIXTURE_TEST_SUITE(cluster_force, cluster_force::forced)

BOOST_AUTO_TEST_CASE(a_peer_that_returns_alone_joins_the_new_shoal) {
  force_after_two_deaths();
  begin(b);
  link(a, b);
  run(5000 * ms);
  BOOST_TEST(in(b, made));
  BOOST_TEST(b.core->current().members.size() == 2u);
  begin(c);
  link(b, c); // and the next hears it from that one
  run(5000 * ms);
  BOOST_TEST(all_in(made));
}

/// It was to end in the old shoal, which could not agree to that.
BOOST_AUTO_TEST_CASE(a_job_that_was_to_end_goes_on_in_the_new_shoal) {
  force_after_two_deaths();
  begin(b);
  run(500 * ms);
  BOOST_REQUIRE((b.core->phase() == phase::waiting));
  give(b, drain_job{5});
  give(b, set_job_state{5, job_state::cancelled, 3});
  link(a, b);
  run(5000 * ms);
  BOOST_REQUIRE(in(b, made));
  const job_entry* j = find_job(b.core->current(), 5);
  BOOST_REQUIRE(j != nullptr);
  BOOST_TEST((j->state == job_state::running));
  BOOST_TEST(!is_draining(*j));
  BOOST_TEST(said(b, "in the one that it has joined it goes on"));
}

BOOST_AUTO_TEST_CASE(two_that_return_together_join_though_they_are_a_quorum) {
  force_after_two_deaths();
  begin(b);
  begin(c);
  link(b, c);
  run(3000 * ms);
  BOOST_REQUIRE((b.core->phase() == phase::member)); // of the old one
  BOOST_REQUIRE((b.core->current().shoal == old));
  link(a, b);
  link(a, c);
  run(8000 * ms);
  BOOST_TEST(all_in(made));
  BOOST_TEST(find_job(a.core->current(), 5) != nullptr);
}

BOOST_AUTO_TEST_CASE(two_that_meet_the_new_shoal_first_join_it) {
  force_after_two_deaths();
  begin(b);
  begin(c);
  link(a, b);
  link(a, c);
  link(b, c);
  run(8000 * ms);
  BOOST_TEST(all_in(made));
}

BOOST_AUTO_TEST_CASE(the_new_shoal_is_known_as_such_after_a_restart) {
  force_after_two_deaths();
  stop(a);
  begin(a);
  run(1000 * ms);
  begin(b);
  link(a, b);
  run(5000 * ms);
  BOOST_TEST(in(b, made));
}

// It has ended the job that the others would begin again.
// a was away when job 6 came, of which b and c were the quorum.
BOOST_AUTO_TEST_CASE(a_peer_that_waits_brings_the_jobs_that_the_others_missed) {
  together_with_a_job();
  const history before = a.disk;
  give(b, submit_job{job(6)});
  run(500 * ms);
  for (node* n : nodes())
    stop(*n);
  a.disk = before;
  begin(a);
  force();
  BOOST_REQUIRE(find_job(a.core->current(), 6) == nullptr);
  begin(b);
  link(a, b);
  run(5000 * ms);
  BOOST_REQUIRE(in(b, made));
  BOOST_TEST(find_job(a.core->current(), 6) != nullptr);
}

BOOST_AUTO_TEST_CASE(a_job_that_the_new_shoal_has_done_is_not_run_again) {
  force_after_two_deaths();
  give(a, set_job_state{5, job_state::done, 10});
  run(1000 * ms);
  begin(b);
  begin(c);
  link(b, c);
  run(3000 * ms);
  link(a, b);
  link(a, c);
  run(8000 * ms);
  BOOST_TEST(all_in(made));
  const job_entry* j = find_job(b.core->current(), 5);
  BOOST_REQUIRE(j != nullptr);
  BOOST_TEST((j->state == job_state::done));
}

// The others were only out of reach, and went on: no job is given up, and both
// report two shoals, until the old one has no job.
BOOST_AUTO_TEST_CASE(a_shoal_that_had_gone_on_says_that_there_are_two) {
  together_with_a_job();
  stop(a);
  run(3000 * ms);
  BOOST_REQUIRE((b.core->phase() == phase::member));
  begin(a);
  force();
  link(a, b);
  link(a, c);
  run(8000 * ms);
  BOOST_TEST(in(b, old));
  BOOST_TEST(in(c, old));
  BOOST_TEST(in(a, made));
  BOOST_TEST(said(b, "recover --force"));
  give(b, set_job_state{5, job_state::done, 10});
  run(8000 * ms);
  BOOST_TEST(all_in(made));
}

// So do processes that have come since, whether one or both were gone at a time.
BOOST_AUTO_TEST_CASE(a_shoal_that_had_gone_on_says_so_after_restarts) {
  for (const bool both : {false, true}) {
    forced f;
    f.together_with_a_job();
    f.stop(f.a);
    f.run(3000 * ms);
    BOOST_REQUIRE((f.b.core->phase() == phase::member));
    f.begin(f.a);
    f.force();
    if (both)
      f.stop(f.c);
    for (node* n : {&f.b, &f.c}) {
      f.stop(*n);
      f.begin(*n);
      if (f.b.core && f.c.core)
        f.link(f.b, f.c);
      f.run(3000 * ms);
    }
    BOOST_REQUIRE((f.b.core->phase() == phase::member));
    f.link(f.a, f.b);
    f.link(f.a, f.c);
    f.run(8000 * ms);
    BOOST_TEST(in(f.b, f.old));
    BOOST_TEST(in(f.c, f.old));
    BOOST_TEST((said(f.b, "recover --force") || said(f.c, "recover --force")));
  }
}

// The end that the forced side had made of it was listed, though the job was
// done.
BOOST_AUTO_TEST_CASE(a_job_that_ended_on_both_sides_is_done_or_went_further) {
  const set_job_state done_4{5, job_state::done, 4};
  const set_job_state done_10{5, job_state::done, 10};
  const set_job_state off_4{5, job_state::cancelled, 4};
  const set_job_state off_10{5, job_state::cancelled, 10};
  const std::array<set_job_state, 3> cases[] = {
    {off_4, done_10, done_10}, {off_10, done_4, done_4},
    {done_4, off_10, done_4},  {off_4, off_10, off_10},
    {off_10, off_4, off_10},   {done_10, done_4, done_10}};
  for (const auto& [by_force, without, listed] : cases) {
    forced f;
    f.together_with_a_job();
    f.stop(f.a);
    f.run(3000 * ms);
    f.begin(f.a);
    f.force();
    f.give(f.a, by_force);
    f.give(f.b, without);
    f.run(1000 * ms);
    f.link(f.a, f.b);
    f.link(f.a, f.c);
    f.run(8000 * ms);
    BOOST_TEST(f.all_in(f.made));
    for (const node* n : {&f.a, &f.b, &f.c}) {
      const job_entry* j = find_job(n->core->current(), 5);
      BOOST_REQUIRE(j != nullptr);
      BOOST_TEST((j->state == listed.state));
      BOOST_TEST(j->done_step == listed.done_step);
    }
  }
}

// Versions of a job's state are named by views: those of its two runs differ.
BOOST_AUTO_TEST_CASE(the_two_shoals_share_no_number_of_a_view) {
  together_with_a_job();
  stop(a);
  run(3000 * ms);
  BOOST_REQUIRE((b.core->phase() == phase::member));
  begin(a);
  force();
  const epoch first = a.core->current().number;
  for (job_id id = 100; id < 110; ++id) {
    give(b, submit_job{job(id)});
    run(500 * ms);
  }
  BOOST_TEST(find_job(b.core->current(), 109) != nullptr);
  BOOST_TEST(b.core->current().number < first);
}

BOOST_AUTO_TEST_CASE(a_job_that_the_new_shoal_does_not_know_is_not_given_up) {
  force_after_two_deaths();
  begin(b);
  begin(c);
  link(b, c);
  run(3000 * ms);
  give(b, submit_job{job(6)});
  run(500 * ms);
  link(a, b);
  link(a, c);
  run(8000 * ms);
  BOOST_TEST(in(b, old));
  BOOST_TEST(said(b, "recover --force"));
  BOOST_REQUIRE(find_job(b.core->current(), 6) != nullptr);
  give(b, set_job_state{6, job_state::done, 10});
  run(8000 * ms);
  BOOST_TEST(all_in(made));
}

BOOST_AUTO_TEST_SUITE_END()
