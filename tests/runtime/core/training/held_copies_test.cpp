// tests/runtime/core/training/held_copies_test.cpp -- copies of units, by
// themselves.
#include "runtime/core/training/job/state/held_copies.hpp"
#include "tests/runtime/core/training/job_pieces.hpp"

namespace shoal::test {
BOOST_AUTO_TEST_SUITE(job_held_copies)

namespace {

using units = std::vector<std::uint32_t>;

/// Peers 1 and 2, a stage each; peer 1 holds units 0 and 1, and follows 2 and 3
/// by copies every ten steps.
island_place spaced() {
  island_place a = make_place(1, 2);
  a.copy_every = 10;
  a.followers = {{id(2), 0, 2}, {id(1), 2, 4}};
  return a;
}

resume_decision at_step(std::uint64_t step) {
  resume_decision to;
  to.version = {step, 2};
  return to;
}

struct peer_1 {
  job_actions
  resume(const resume_decision& to, const std::map<peer_id, seal>& seals = {}) {
    job_actions out;
    copies.resume(d, to, seals, out);
    return out;
  }
  job_actions enter(std::uint64_t step, bool committed = true) {
    job_actions out;
    copies.take_if_due(d, {step, 2}, committed, out);
    return out;
  }
  /// Of the newest copies, all that the list names.
  void get(std::uint64_t step, const units& which) {
    for (const std::uint32_t u : which)
      BOOST_TEST(copies.take({d.header.digest, {step, 2}, u}));
  }
  job_actions note(std::uint64_t step, std::uint64_t copied) {
    vote v;
    v.copied = copied;
    job_actions out;
    copies.note({&v, &v}, step, out);
    return out;
  }

  duty d = duty_under(spaced(), {7, 0}, peer(1));
  held_copies copies;
};

} // namespace

BOOST_AUTO_TEST_CASE(the_first_copies_wait_for_a_committed_step) {
  peer_1 p;
  (void)p.resume(at_step(4));
  BOOST_TEST(p.enter(4, false).empty());
  const auto taken = all<act::take_copies>(p.enter(5));
  BOOST_REQUIRE(taken.size() == 1u);
  BOOST_TEST((taken[0].version == state_version{5, 2}));
  BOOST_TEST((taken[0].own == units{0, 1}));
  BOOST_TEST((taken[0].followed == units{2, 3}));
  BOOST_TEST(p.copies.missing() == 4u);
}

BOOST_AUTO_TEST_CASE(copies_begin_early_enough_for_their_lag) {
  peer_1 p;
  (void)p.resume(at_step(0));
  (void)p.enter(1);
  p.get(1, {0, 1, 2, 3});
  BOOST_TEST(p.copies.complete_here() == 2u);
  (void)p.note(4, 2); // complete three steps later: the next after 10 - 3 + 1
  for (std::uint64_t step = 4; step < 9; ++step)
    BOOST_TEST(p.enter(step).empty());
  BOOST_TEST(!p.enter(9).empty());
}

BOOST_AUTO_TEST_CASE(older_copies_go_when_all_votes_report_the_newer) {
  peer_1 p;
  (void)p.resume(at_step(0));
  (void)p.enter(1);
  p.get(1, {0, 1, 2, 3});
  (void)p.note(2, 2);
  (void)p.enter(11);
  p.get(11, {0, 1, 2, 3});
  BOOST_TEST(p.copies.all().size() == 2u);
  BOOST_TEST(p.note(12, 0).empty()); // somebody lacks one
  const auto dropped = all<act::drop_copies>(p.note(13, 12));
  BOOST_REQUIRE(dropped.size() == 1u);
  BOOST_TEST((dropped[0].keep == std::vector<state_version>{{11, 2}}));
  BOOST_TEST(!p.copies.has({1, 2}, 0));
  BOOST_TEST(p.copies.has({11, 2}, 3));
}

BOOST_AUTO_TEST_CASE(a_vote_waits_for_copies_that_take_too_long) {
  peer_1 p;
  (void)p.resume(at_step(0));
  (void)p.enter(1);
  p.copies.step_begins(p.d); // none is complete: up to step 10
  BOOST_TEST(!p.copies.late(10));
  BOOST_TEST(p.copies.late(11));
  p.get(1, {0, 1, 2});
  BOOST_TEST(p.copies.late(11));
  p.get(1, {3});
  BOOST_TEST(!p.copies.late(11));
}

BOOST_AUTO_TEST_CASE(copies_of_another_version_or_assignment_do_not_count) {
  peer_1 p;
  (void)p.resume(at_step(0));
  (void)p.enter(1);
  BOOST_TEST(!p.copies.take({p.d.header.digest, {2, 2}, 0}));
  BOOST_TEST(!p.copies.take({p.d.header.digest + 1, {1, 2}, 0}));
  p.copies.halt();
  p.get(1, {0}); // before the halt is complete it is a fact
  p.copies.halted();
  BOOST_TEST(!p.copies.take({p.d.header.digest, {1, 2}, 1}));
  BOOST_TEST(p.copies.complete_here() == 0u);
}

BOOST_AUTO_TEST_CASE(copies_that_are_everywhere_stay_in_use) {
  std::map<peer_id, seal> seals;
  for (const std::uint8_t n : {1, 2})
    for (std::uint32_t u = 0; u < 4; ++u)
      seals[peer(n)].copies.push_back({u, {3, 2}});
  resume_decision to = at_step(3);
  to.copies = state_version{3, 2};
  peer_1 p;
  (void)p.resume(to, seals);
  BOOST_TEST(p.enter(3, false).empty());
  BOOST_TEST(p.copies.complete_here() == 4u); // nothing is taken again
  seals[peer(2)].copies.pop_back();
  peer_1 q;
  (void)q.resume(to, seals);
  BOOST_TEST(q.enter(3, false).empty());
  BOOST_TEST(q.copies.complete_here() == 0u);
}

BOOST_AUTO_TEST_CASE(where_all_follow_every_step_no_copies_are_taken) {
  peer_1 p;
  p.d.place->copy_every = 1;
  (void)p.resume(at_step(0));
  BOOST_TEST(p.enter(5).empty());
  p.d = duty_under(spaced(), {7, 0}, peer(1));
  p.d.place->followers.clear();
  BOOST_TEST(p.enter(5).empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
