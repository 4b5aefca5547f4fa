// tests/apps/terminal/shell_words_test.cpp -- what commands print for the user's shell.
#include "apps/terminal/confirm.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(shell_words)

using namespace shoal::apps;

BOOST_AUTO_TEST_CASE(a_word_is_quoted_where_a_shell_would_read_more_into_it) {
  BOOST_TEST(shell_word("runs/a-1.b") == "runs/a-1.b");
  BOOST_TEST(shell_word("") == "''");
  BOOST_TEST(shell_word("my runs") == "'my runs'");
  BOOST_TEST(shell_word("it's") == "'it'\\''s'");
}

BOOST_AUTO_TEST_CASE(a_path_is_no_option) {
  BOOST_TEST(shell_path("-y") == "./-y");
  BOOST_TEST(shell_path("--out dir") == "'./--out dir'");
  BOOST_TEST(shell_path("out/-y") == "out/-y");
}

BOOST_AUTO_TEST_SUITE_END()
