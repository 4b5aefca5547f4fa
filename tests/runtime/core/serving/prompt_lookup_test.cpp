// tests/runtime/core/serving/prompt_lookup_test.cpp -- what is guessed, and how much.
#include "runtime/core/serving/prompt_lookup.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(prompt_lookups)

using namespace shoal::core;

namespace {

using tokens = std::vector<token_id>;

void expect(const tokens& all, std::size_t most, const tokens& guesses) {
  BOOST_TEST(looked_up(all, most) == guesses, boost::test_tools::per_element());
}

} // namespace

BOOST_AUTO_TEST_CASE(what_followed_the_same_tokens_is_guessed) {
  expect({1, 2, 3, 4, 5, 1, 2, 3}, 5, {4, 5, 1, 2, 3});
  expect({1, 2, 3, 4, 5, 1, 2, 3}, 7, {4, 5, 1, 2, 3, 4, 5}); // and again
  expect({1, 2, 3, 4, 5, 1, 2, 3}, 2, {4, 5});
  expect({1, 2, 3, 7, 1, 2, 3, 8, 1, 2, 3}, 1, {8}); // the newest place
  // Three tokens count for more than two, though two came later.
  expect({1, 2, 3, 7, 9, 2, 3, 8, 1, 2, 3}, 1, {7});
  expect({9, 2, 3, 7, 1, 2, 3}, 1, {7}); // two
  expect({5, 5, 5, 5}, 4, {5, 5, 5, 5});
}

BOOST_AUTO_TEST_CASE(nothing_is_guessed_after_what_never_came) {
  expect({}, 4, {});
  expect({1}, 4, {});
  expect({1, 1}, 4, {});
  expect({7, 3, 8, 3}, 4, {}); // one token is not enough
  expect({1, 2, 3, 4, 1, 2, 3}, 0, {});
}

BOOST_AUTO_TEST_CASE(a_pace_follows_what_was_right) {
  guess_pace pace;
  BOOST_TEST(pace.next(16) == 4u);
  pace.learn(4, 4);
  BOOST_TEST(pace.next(16) == 8u);
  BOOST_TEST(pace.next(5) == 5u);
  pace.learn(5, 2);
  BOOST_TEST(pace.next(16) == 3u);
  for (std::size_t pause = 1; pause <= guess_pace::pause_max; pause *= 2) {
    pace.learn(3, 0);
    for (std::size_t i = 0; i < pause; ++i)
      BOOST_TEST(pace.next(16) == 0u);
    BOOST_TEST(pace.next(16) == 1u);
  }
  pace.learn(1, 1);
  pace.learn(2, 0);
  BOOST_TEST(pace.next(16) == 0u);
  BOOST_TEST(pace.next(16) == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
