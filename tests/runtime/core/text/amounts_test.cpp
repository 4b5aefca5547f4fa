// tests/runtime/core/text/amounts_test.cpp -- sizes and counts in readable
// form.
#include "runtime/core/text/amounts.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdio>
#include <limits>

BOOST_AUTO_TEST_SUITE(amounts)

using namespace shoal::core;

BOOST_AUTO_TEST_CASE(a_size_has_the_unit_that_leaves_few_digits) {
  BOOST_TEST(size_text(0) == "0 B");
  BOOST_TEST(size_text(1023) == "1023 B");
  BOOST_TEST(size_text(1536) == "1.5 KiB");
  BOOST_TEST(size_text(std::uint64_t{10752} << 20) == "10.5 GiB");
  BOOST_TEST(size_text(std::numeric_limits<std::uint64_t>::max())
             == "16777216 TiB");
  BOOST_TEST(size_text(std::uint64_t{16} << 30) == "16 GiB");
}

BOOST_AUTO_TEST_CASE(rates_and_delays_have_units_of_a_thousand) {
  BOOST_TEST(rate_text(0) == "0 B/s");
  BOOST_TEST(rate_text(93'100'000) == "93.1 MB/s");
  BOOST_TEST(rate_text(1'000'000'000) == "1 GB/s");
  BOOST_TEST(rate_text(250'000'000'000) == "250 GB/s");
  BOOST_TEST(delay_text(999) == "999 ns");
  BOOST_TEST(delay_text(100'000) == "100 us");
  BOOST_TEST(delay_text(20'500'000) == "20.5 ms");
  BOOST_TEST(delay_text(1'200'000'000) == "1.2 s");
}

BOOST_AUTO_TEST_CASE(one_thing_is_no_plural) {
  BOOST_TEST(count_text(0, "peer") == "0 peers");
  BOOST_TEST(count_text(1, "peer") == "1 peer");
  BOOST_TEST(count_text(2, "file") == "2 files");
}

BOOST_AUTO_TEST_CASE(not_a_number_has_no_sign) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (double value : {nan, -nan}) {
    char text[16];
    std::snprintf(text, sizeof text, "%.4f", printable(value));
    BOOST_TEST(std::string(text) == "nan");
  }
  BOOST_TEST(printable(-1.5) == -1.5);
}

BOOST_AUTO_TEST_SUITE_END()
