// tests/runtime/core/training/step_votes_test.cpp -- which votes are kept.
#include "runtime/core/training/job/state/step_votes.hpp"
#include "tests/runtime/core/training/job_pieces.hpp"

namespace shoal::test {
BOOST_AUTO_TEST_SUITE(job_step_votes)

namespace {

vote for_step(std::uint64_t step, nanoseconds busy = 0) {
  vote v;
  v.step = step;
  v.busy = busy;
  return v;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_step_needs_a_vote_from_every_participant) {
  const duty d = duty_under(make_place(1, 2), {7, 0}, peer(1));
  step_votes votes;
  votes.put(peer(1), for_step(5));
  BOOST_TEST(!votes.complete(d, 5));
  votes.take(peer(2), for_step(6), 5); // it is a step ahead
  BOOST_TEST(!votes.complete(d, 5));
  votes.take(peer(2), for_step(5), 5);
  BOOST_TEST(votes.complete(d, 5));
  BOOST_TEST(!votes.complete(d, 6));
}

BOOST_AUTO_TEST_CASE(the_first_vote_of_a_peer_counts) {
  step_votes votes;
  votes.take(peer(2), for_step(5, 10), 5);
  votes.take(peer(2), for_step(5, 20), 5);
  BOOST_REQUIRE(votes.find(5, peer(2)) != nullptr);
  BOOST_TEST(votes.find(5, peer(2))->busy == 10);
  BOOST_TEST(votes.find(5, peer(3)) == nullptr);
  BOOST_TEST(votes.find(6, peer(2)) == nullptr);
}

BOOST_AUTO_TEST_CASE(only_votes_beside_the_step_in_progress_are_kept) {
  step_votes votes;
  for (std::uint64_t step = 1; step <= 10; ++step)
    votes.take(peer(2), for_step(step), 5);
  for (std::uint64_t step = 1; step <= 10; ++step)
    BOOST_TEST(votes.of(step).size() == (step >= 4 && step <= 6 ? 1u : 0u));
  votes.begin(6);
  BOOST_TEST(votes.of(4).empty());
  BOOST_TEST(votes.of(5).size() == 1u); // a peer may still ask for ours
}

BOOST_AUTO_TEST_CASE(before_the_step_is_known_two_are_kept) {
  step_votes votes;
  for (const std::uint64_t step : {8, 9, 10})
    votes.take(peer(2), for_step(step), 0);
  votes.take(peer(3), for_step(8), 0);
  BOOST_TEST(votes.of(8).size() == 2u);
  BOOST_TEST(votes.of(9).size() == 1u);
  BOOST_TEST(votes.of(10).empty());
  votes.halt();
  BOOST_TEST(votes.of(8).empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
