// tests/apps/terminal/terminal_test.cpp -- a page that is drawn again and again.
#include "apps/terminal/terminal.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(terminal)

using namespace shoal::apps;

BOOST_AUTO_TEST_CASE(a_page_overwrites_the_former_one) {
  BOOST_TEST(redraw("ab\n\ncd", {80, 24})
             == "\x1b[Hab\x1b[K\n\x1b[K\ncd\x1b[K\n\x1b[J");
}

BOOST_AUTO_TEST_CASE(long_lines_are_cut_at_a_character) {
  BOOST_TEST(redraw("\xc3\xa4\xc3\xb6\xc3\xbc", {2, 24})
             == "\x1b[H\xc3\xa4\xc3\xb6\x1b[K\n\x1b[J");
}

BOOST_AUTO_TEST_CASE(lines_that_do_not_fit_are_counted) {
  BOOST_TEST(redraw("1\n2\n3\n4\n5\n", {80, 4})
             == "\x1b[H1\x1b[K\n2\x1b[K\n... 3 more lines do not fit this "
                "window\x1b[K\n\x1b[J");
  BOOST_TEST(redraw("1\n2\n3\n", {80, 4})
             == "\x1b[H1\x1b[K\n2\x1b[K\n3\x1b[K\n\x1b[J");
  for (int rows : {-1, 0, 1, 2})
    BOOST_TEST(!redraw("1\n2\n3\n", {80, rows}).empty());
}

BOOST_AUTO_TEST_SUITE_END()
