// tests/runtime/core/text/shown_test.cpp -- no byte of a foreign text steers a
// terminal.
#include "runtime/core/text/shown.hpp"
#include "runtime/core/text/utf8.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

namespace shoal::core {

BOOST_AUTO_TEST_SUITE(shown_text)

BOOST_AUTO_TEST_CASE(plain_text_of_any_script_stays) {
  for (const char* text : {"", "peer-7", "Jos\u00e9", "\u65e5\u672c",
                           "\u05e9\u05dc\u05d5\u05dd", "\U0001F41F fish"}) {
    BOOST_TEST(shown(text) == text);
    BOOST_TEST(is_shown(text));
  }
}

BOOST_AUTO_TEST_CASE(invalid_utf8_is_replaced) {
  BOOST_TEST(shown("Jos\xe9") == "Jos\uFFFD");
  BOOST_TEST(shown("\xf0\x9f\x90 x") == "\uFFFD x");
  BOOST_TEST(shown("\xed\xa0\x80") == "\uFFFD\uFFFD\uFFFD"); // a surrogate
  BOOST_TEST(!is_shown("Jos\xe9"));
}

BOOST_AUTO_TEST_CASE(controls_are_replaced) {
  BOOST_TEST(shown("a\x1b]0;title\x07z") == "a ]0;title z");
  BOOST_TEST(shown("a\u009b2Jz") == "a 2Jz");
  BOOST_TEST(shown("a\u202ez\u2066\u061c") == "a z  ");
  BOOST_TEST(shown("a\x7fz\u2028") == "a z ");
  BOOST_TEST(shown(std::string_view("a\0z", 3)) == "a z");
}

BOOST_AUTO_TEST_CASE(lines_stay_only_where_a_text_may_have_lines) {
  const std::string text = "one\n\ttwo\r";
  BOOST_TEST(shown(text) == "one  two ");
  BOOST_TEST(shown(text, line_ends::kept) == "one\n\ttwo ");
  BOOST_TEST(is_shown("one\n\ttwo", line_ends::kept));
  BOOST_TEST(!is_shown("one\n\ttwo"));
}

BOOST_AUTO_TEST_CASE(a_cut_leaves_whole_characters) {
  BOOST_TEST(shown("Jos\u00e9", 4) == "Jos");
  BOOST_TEST(shown("Jos\u00e9", 5) == "Jos\u00e9");
  BOOST_TEST(shown("Jos\xe9", 5) == "Jos"); // U+FFFD has three bytes
  BOOST_TEST(shown("abc", 0).empty());
}

BOOST_AUTO_TEST_CASE(json_keeps_its_value_and_loses_raw_controls) {
  BOOST_TEST(escape_controls("{\n  \"a\": \"\u009b2J\u202e\x7f\u00e9\"\n}")
             == "{\n  \"a\": \"\\u009b2J\\u202e\\u007f\u00e9\"\n}");
}

// Goal: for all bytes, the result is safe to show, and applying shown() again
// changes nothing. Method: random bytes, many of them parts of characters.
BOOST_AUTO_TEST_CASE(any_bytes_become_shown_text) {
  for (unsigned seed = 1; seed <= 2000; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937 random(seed);
      std::string text(random() % 40, ' ');
      for (char& c : text)
        c = static_cast<char>(random() % 3 == 0
                                ? "\xe2\x80\xae\xc2\x9b\x1b"[random() % 6]
                                : random() % 256);
      for (const line_ends ends : {line_ends::none, line_ends::kept}) {
        const std::string once = shown(text, ends);
        BOOST_TEST(is_shown(once, ends));
        BOOST_TEST(shown(once, ends) == once);
        BOOST_TEST(is_shown(text, ends) == (once == text));
        const std::string cut = shown(text, 7, ends);
        BOOST_TEST(cut.size() <= 7);
        BOOST_TEST(is_shown(cut, ends));
        BOOST_TEST(once.starts_with(cut));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::core
