// tests/runtime/node/state/waiting_requests_test.cpp -- the events that answer
// waiting requests.
#include "runtime/core/view.hpp"
#include "runtime/node/state/waiting_requests.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(requests_that_wait)

using namespace std::chrono_literals;

namespace {

core::member peer(std::uint8_t number, const char* name) {
  core::member m;
  m.id.peer.fill(number);
  m.name = name;
  m.addresses = {"10.0.0." + std::to_string(number) + ":18372"};
  return m;
}

core::view view_of(std::uint8_t shoal) {
  core::view v;
  v.shoal[0] = shoal;
  v.members = {peer(1, "anna"), peer(2, "bert")};
  return v;
}

} // namespace

BOOST_AUTO_TEST_CASE(before_the_first_view_only_jobs_are_kept) {
  waiting_requests w;
  const auto now = waiting_requests::clock::now();
  BOOST_TEST(!w.want(1, {}));
  core::job_entry job;
  job.id = 7;
  for (std::size_t k = 0; k < waiting_requests::early_jobs_max; ++k)
    BOOST_TEST((w.submit(k, job, now) == waiting_requests::submitted::kept));
  BOOST_TEST((w.submit(99, job, now) == waiting_requests::submitted::too_many));
  // Nobody waits any more for those.
  BOOST_TEST((w.submit(99, job, now + agreement_wait)
              == waiting_requests::submitted::kept));
  const auto first = w.adopted(view_of(1));
  BOOST_TEST(first.answers.empty());
  BOOST_TEST_REQUIRE(first.jobs.size() == 1);
  BOOST_TEST(first.jobs[0].token == 99);
  BOOST_TEST(w.adopted(view_of(1)).jobs.empty());
}

// A client that submits it again would have two jobs.
BOOST_AUTO_TEST_CASE(a_job_that_was_given_up_is_ended_when_a_view_has_it) {
  using waited_for = waiting_requests::waited_for;
  waiting_requests w;
  const auto now = waiting_requests::clock::now();
  core::job_entry early;
  early.id = 3;
  BOOST_TEST((w.submit(1, early, now) == waiting_requests::submitted::kept));
  BOOST_TEST((w.give_up(1).what == waited_for::job));
  core::view v = view_of(1);
  BOOST_TEST(w.adopted(v).jobs.empty());
  core::job_entry job;
  job.id = 7;
  BOOST_TEST((w.submit(5, job, now) == waiting_requests::submitted::propose));
  BOOST_TEST((w.give_up(5).what == waited_for::job));
  BOOST_TEST((w.give_up(5).what == waited_for::nothing));
  BOOST_TEST(w.adopted(v).unwanted.empty());
  v.jobs.push_back(job);
  const auto next = w.adopted(v);
  BOOST_TEST(next.answers.empty());
  BOOST_TEST((next.unwanted == std::vector<core::job_id>{7}));
  BOOST_TEST(w.adopted(v).unwanted.empty()); // once
}

BOOST_AUTO_TEST_CASE(a_refused_job_or_another_request_leaves_nothing_to_end) {
  using waited_for = waiting_requests::waited_for;
  waiting_requests w;
  core::view v = view_of(1);
  BOOST_TEST(w.adopted(v).answers.empty());
  core::job_entry job;
  job.id = 7;
  const auto now = waiting_requests::clock::now();
  BOOST_TEST((w.submit(5, job, now) == waiting_requests::submitted::propose));
  BOOST_TEST((w.give_up(5).what == waited_for::job));
  BOOST_TEST(w.rejected(7).empty());
  waiting_requests::wanted_view other;
  other.tag = 7;
  other.reached = [](const core::view&, outcome&) { return false; };
  BOOST_TEST(w.want(6, other));
  BOOST_TEST((w.give_up(6).what == waited_for::view));
  w.want_other_shoal(8);
  BOOST_TEST((w.give_up(8).what == waited_for::view));
  v.jobs.push_back(job);
  BOOST_TEST(w.adopted(v).unwanted.empty());
}

BOOST_AUTO_TEST_CASE(a_job_is_answered_by_the_view_that_has_it) {
  waiting_requests w;
  core::view v = view_of(1);
  BOOST_TEST(w.adopted(v).answers.empty());
  core::job_entry job;
  job.id = 7;
  BOOST_TEST((w.submit(5, job, waiting_requests::clock::now())
              == waiting_requests::submitted::propose));
  BOOST_TEST(w.adopted(v).answers.empty());
  v.jobs.push_back(job);
  const auto next = w.adopted(v);
  BOOST_TEST_REQUIRE(next.answers.size() == 1);
  BOOST_TEST(next.answers[0].token == 5);
  BOOST_TEST(next.answers[0].what.job == 7);
  BOOST_TEST(w.adopted(v).answers.empty()); // once
}

BOOST_AUTO_TEST_CASE(a_recovery_is_answered_by_another_shoal) {
  waiting_requests w;
  static_cast<void>(w.adopted(view_of(1)));
  w.want_other_shoal(5);
  BOOST_TEST(w.adopted(view_of(1)).answers.empty());
  BOOST_TEST(w.adopted(view_of(2)).answers.size() == 1);
}

BOOST_AUTO_TEST_CASE(a_request_that_the_core_refuses_waits_no_longer) {
  waiting_requests w;
  static_cast<void>(w.adopted(view_of(1)));
  BOOST_TEST(w.want(5, {77, [](const core::view&, outcome&) { return true; }}));
  BOOST_TEST(w.rejected(78).empty());
  BOOST_TEST(w.rejected(77) == std::vector<std::uint64_t>{5},
             boost::test_tools::per_element());
  BOOST_TEST(w.adopted(view_of(1)).answers.empty());
}

BOOST_AUTO_TEST_CASE(only_the_peer_that_was_asked_answers) {
  waiting_requests w;
  const auto now = waiting_requests::clock::now();
  const auto asked = peer(1, "anna").id.peer;
  w.asked(5, asked, now, now + 1h);
  BOOST_TEST(!w.replied(5, peer(2, "bert").id.peer));
  BOOST_TEST(w.replied(5, asked));
  BOOST_TEST(!w.replied(5, asked)); // once
  w.asked(6, asked, now, now + 1h);
  w.asked(7, asked, now + 1h, now + 2h); // drops requests that are too late
  BOOST_TEST(!w.replied(6, asked));
  w.forget(7);
  BOOST_TEST(!w.replied(7, asked));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
