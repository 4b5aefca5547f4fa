// tests/apps/top/cells_test.cpp -- widths of Unicode, cuts, sparklines.
#include "apps/top/cells.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <vector>

BOOST_AUTO_TEST_SUITE(top_cells)

using namespace shoal::apps;

BOOST_AUTO_TEST_CASE(wide_and_combining_characters_count_as_on_a_terminal) {
  BOOST_TEST(columns_of("") == 0);
  BOOST_TEST(columns_of("abc") == 3);
  BOOST_TEST(columns_of("\u00e9") == 1);       // one code
  BOOST_TEST(columns_of("e\u0301") == 1);      // letter and accent
  BOOST_TEST(columns_of("\u6f22\u5b57") == 4); // two wide ones
  BOOST_TEST(columns_of("\u2581\u2588") == 2); // blocks
}

BOOST_AUTO_TEST_CASE(a_cut_text_fits_and_ends_in_an_ellipsis) {
  BOOST_TEST(cut("abcdef", 6) == "abcdef");
  BOOST_TEST(cut("abcdef", 5) == "abcd\u2026");
  BOOST_TEST(cut("abcdef", 1) == "\u2026");
  BOOST_TEST(cut("abcdef", 0) == "");
  BOOST_TEST(cut("abcdef", -3) == "");
  // A wide character is not halved, and an accent stays with its letter.
  BOOST_TEST(cut("\u6f22\u5b57\u6f22", 4) == "\u6f22\u2026");
  BOOST_TEST(cut("\u6f22\u5b57\u6f22", 5) == "\u6f22\u5b57\u2026");
  BOOST_TEST(cut("e\u0301abc", 2) == "e\u0301\u2026");
  for (int columns = 0; columns < 12; ++columns)
    BOOST_TEST(columns_of(cut("a\u6f22e\u0301b\u5b57cd", columns)) <= columns);
}

BOOST_AUTO_TEST_CASE(a_fitted_text_has_the_width) {
  BOOST_TEST(fitted("ab", 4) == "ab  ");
  BOOST_TEST(fitted("ab", 4, align::right) == "  ab");
  BOOST_TEST(fitted("\u6f22\u5b57\u6f22", 4) == "\u6f22\u2026 ");
  for (int columns = 0; columns < 9; ++columns)
    BOOST_TEST(columns_of(fitted("a\u6f22b\u5b57", columns)) == columns);
}

BOOST_AUTO_TEST_CASE(a_sparkline_has_the_last_values_by_height) {
  const std::vector<double> values{9, 0, 1, 2, 3, 4, 5, 6, 7};
  BOOST_TEST(sparkline(values, 8)
             == "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588");
  BOOST_TEST(sparkline(values, 2) == "\u2581\u2588");
  BOOST_TEST(sparkline(values, 0) == "");
  BOOST_TEST(sparkline({}, 5) == "");
  const std::vector<double> flat{2, 2}, odd{1, NAN, HUGE_VAL, 2};
  BOOST_TEST(sparkline(flat, 5) == "\u2581\u2581");
  BOOST_TEST(sparkline(odd, 5) == "\u2581  \u2588");
  constexpr double most = std::numeric_limits<double>::max();
  const std::vector<double> extreme{-most, most};
  BOOST_TEST(sparkline(extreme, 5) == "\u2581\u2588");
}

BOOST_AUTO_TEST_CASE(numbers_are_short) {
  for (const auto& [count, text] :
       std::vector<std::pair<double, const char*>>{{0, "0"},
                                                   {0.4, "0"},
                                                   {999, "999"},
                                                   {999.6, "1.0k"},
                                                   {1234, "1.2k"},
                                                   {9960, "10k"},
                                                   {34000, "34k"},
                                                   {999600, "1.0M"},
                                                   {5.6e6, "5.6M"},
                                                   {7e14, "700T"},
                                                   {-1, "-"},
                                                   {NAN, "-"}})
    BOOST_TEST(short_count(count) == text);
  BOOST_TEST(percent(0.126) == "13 %");
  BOOST_TEST(percent(NAN) == "-");
}

BOOST_AUTO_TEST_SUITE_END()
