// tests/runtime/core/serving/pass_pace_test.cpp -- prompts beside sequences that
// generate.
#include "runtime/core/serving/pass_pace.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::core {

BOOST_AUTO_TEST_SUITE(passes_with_prompts)

/// A machine on which a pass costs 50 ms, a sequence 1 ms and a prompt's token
/// 2 ms.
static nanoseconds time_of(std::size_t generating, std::size_t of_prompts) {
  return nanoseconds(50 + generating + 2 * of_prompts) * 1'000'000;
}

BOOST_AUTO_TEST_CASE(they_take_at_most_twice_the_time_of_one_without) {
  pass_pace p;
  BOOST_TEST(p.beside() == pass_pace::first_beside);
  for (int i = 0; i < 20; ++i)
    p.took(8, 0, time_of(8, 0));
  BOOST_TEST(p.beside() == pass_pace::first_beside);
  for (int i = 0; i < 20; ++i)
    p.took(8, p.beside(), time_of(8, p.beside()));
  BOOST_TEST(p.beside() > pass_pace::beside_min);
  BOOST_TEST(time_of(8, p.beside()) <= 2 * time_of(8, 0));
  BOOST_TEST(2 * time_of(8, p.beside())
             > 3 * time_of(8, 0)); // and not much less
}

BOOST_AUTO_TEST_CASE(passes_of_prompts_alone_tell_what_they_cost) {
  pass_pace p;
  BOOST_TEST(p.prompts_per_s() == 0u);
  p.took(0, 512, time_of(0, 512));
  BOOST_TEST(p.prompts_per_s() > 450u);
  BOOST_TEST(p.prompts_per_s() < 500u);
  p.took(4, 64, time_of(4, 64)); // what is left is the time without
  BOOST_TEST(p.beside() > pass_pace::beside_min);
  BOOST_TEST(p.beside() < pass_pace::first_beside);
}

BOOST_AUTO_TEST_CASE(every_prompt_goes_on) {
  pass_pace p;
  p.took(0, 512, 1'000'000'000);
  p.took(1, 0, 1);
  BOOST_TEST(p.beside() == pass_pace::beside_min);
  p.took(1, 0, 0); // a clock that stands, or goes back
  p.took(1, 9, -5);
  BOOST_TEST(p.beside() == pass_pace::beside_min);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::core
