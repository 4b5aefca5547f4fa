// tests/runtime/core/measure/median_test.cpp -- medians, and job ids as text.
#include "runtime/core/ids.hpp"
#include "runtime/core/measure/median.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <vector>

using namespace shoal::core;

BOOST_AUTO_TEST_SUITE(medians)

BOOST_AUTO_TEST_CASE(the_middle_one_of_an_odd_number) {
  BOOST_TEST(median(std::vector{5, 1, 9}) == 5);
  BOOST_TEST(median(std::array{7.5}) == 7.5);
}

BOOST_AUTO_TEST_CASE(the_higher_of_two_in_the_middle) {
  BOOST_TEST(median(std::vector{4, 1, 3, 2}) == 3);
}

BOOST_AUTO_TEST_CASE(of_nothing_it_is_zero) {
  BOOST_TEST(median(std::vector<double>{}) == 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(ids)

BOOST_AUTO_TEST_CASE(a_job_is_16_digits_the_highest_first) {
  BOOST_TEST(job_text(0x0123456789abcdef) == "0123456789abcdef");
  BOOST_TEST(job_text(7) == "0000000000000007");
}

BOOST_AUTO_TEST_SUITE_END()
