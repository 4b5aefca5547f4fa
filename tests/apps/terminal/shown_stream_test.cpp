// tests/apps/terminal/shown_stream_test.cpp -- a command's output, piece by
// piece.
#include "apps/terminal/shown_stream.hpp"

#include <boost/test/unit_test.hpp>

#include <sstream>

BOOST_AUTO_TEST_SUITE(shown_stream_tests)

using shoal::apps::shown_stream;

BOOST_AUTO_TEST_CASE(foreign_names_are_mended_and_lines_stay) {
  std::ostringstream out;
  {
    const shown_stream guard(out);
    out << "shoal: " << std::string("Jos\xe9 \x1b[2J\u202e") << '\n'
        << 7 << "\tof 9\n"
        << std::flush;
  }
  BOOST_TEST(out.str() == "shoal: Jos\uFFFD  [2J \n7\tof 9\n");
  out << '\x1b'; // as before
  BOOST_TEST(out.str().back() == '\x1b');
}

BOOST_AUTO_TEST_CASE(a_character_may_come_in_pieces) {
  const std::string text = "a\u00e9\U0001F41F\u009bz\xf0\x9f";
  std::ostringstream out;
  {
    const shown_stream guard(out);
    for (const char byte : text)
      out << byte;
  }
  BOOST_TEST(out.str() == "a\u00e9\U0001F41F z\uFFFD");
}

BOOST_AUTO_TEST_SUITE_END()
