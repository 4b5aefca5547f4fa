// tests/runtime/core/training/digest_rounds_test.cpp -- whose turn it is to be
// hashed.
#include "runtime/core/training/job/state/digest_rounds.hpp"
#include "tests/runtime/core/training/job_pieces.hpp"

namespace shoal::test {
BOOST_AUTO_TEST_SUITE(job_digest_rounds)

namespace {

using units = std::vector<std::uint32_t>;

const island_place twins = make_place(2, 1); // each holds units 0 to 2

} // namespace

BOOST_AUTO_TEST_CASE(each_unit_has_its_turn_once_in_a_round) {
  digest_rounds rounds(4);
  const duty d = duty_under(twins, {7, 0}, peer(1));
  rounds.begin(d);
  std::map<std::uint32_t, int> turns;
  for (std::uint64_t step = 8; step < 12; ++step) {
    const units due = rounds.due(d, step);
    BOOST_TEST(due.size() <= 1u);
    for (const std::uint32_t unit : due)
      ++turns[unit];
  }
  BOOST_TEST((turns == std::map<std::uint32_t, int>{{0, 1}, {1, 1}, {2, 1}}));
}

BOOST_AUTO_TEST_CASE(all_holders_hash_the_same_unit_at_the_same_step) {
  digest_rounds one(4), other(4);
  const duty d = duty_under(twins, {7, 0}, peer(1));
  const duty e = duty_under(twins, {7, 0}, peer(2));
  one.begin(d);
  other.begin(e);
  for (std::uint64_t step = 0; step < 8; ++step)
    BOOST_TEST(one.due(d, step) == other.due(e, step));
}

BOOST_AUTO_TEST_CASE(a_unit_with_a_single_holder_is_not_hashed) {
  digest_rounds rounds(1);
  const duty d = duty_under(make_place(1, 2), {7, 0}, peer(1));
  rounds.begin(d);
  BOOST_TEST(rounds.due(d, 3).empty());
  const duty of_twins = duty_under(twins, {7, 0}, peer(1));
  rounds.begin(of_twins); // another assignment
  BOOST_TEST((rounds.due(of_twins, 3) == units{0, 1, 2}));
}

BOOST_AUTO_TEST_CASE(nothing_is_hashed_where_that_is_switched_off) {
  digest_rounds rounds(0);
  const duty d = duty_under(twins, {7, 0}, peer(1));
  rounds.begin(d);
  BOOST_TEST(rounds.due(d, 0).empty());
}

BOOST_AUTO_TEST_CASE(two_digests_of_a_unit_differ) {
  vote a, b;
  a.digests = {{1, 10}, {2, 20}};
  b.digests = {{2, 20}};
  BOOST_TEST(!digests_differ({&a, &b}));
  b.digests.push_back({1, 11});
  BOOST_TEST(digests_differ({&a, &b}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::test
