// tests/runtime/model/text/patterns/regex_test.cpp -- patterns, splits, characters.
#include "runtime/core/text/utf8.hpp"
#include "runtime/model/text/patterns/regex.hpp"
#include "runtime/model/text/patterns/unicode.hpp"
#include "runtime/model/text/pre_tokenizer.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(patterns)

using namespace shoal::model::text;

namespace {

/// Matches in brackets.
std::string marked(std::string_view pattern, std::string_view text) {
  const auto compiled = regex::compile(pattern);
  if (!compiled)
    return compiled.message();
  std::vector<text_part> parts;
  if (auto found = compiled->find(text, parts); !found)
    return found.message();
  std::string out;
  for (const text_part& part : parts) {
    const auto of = text.substr(part.first, part.last - part.first);
    out += part.match ? "[" + std::string(of) + "]" : std::string(of);
  }
  return out;
}

std::string pieces(split_behaviour behaviour, bool invert = false) {
  const std::string_view text = "the-final--countdown";
  std::vector<text_part> parts;
  BOOST_REQUIRE(regex::literal("-")->find(text, parts));
  std::string out;
  for (const text_part& part : split_parts(std::move(parts), behaviour, invert))
    out += std::string(text.substr(part.first, part.last - part.first)) + "|";
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(matches_cover_the_text_in_order) {
  BOOST_TEST(marked("b+", "abba b") == "a[bb]a [b]");
  BOOST_TEST(marked("x", "abc") == "abc");
  BOOST_TEST(marked("x*", "axb") == "[]a[x]b[]");
  BOOST_TEST(marked("x", "") == "");
}

BOOST_AUTO_TEST_CASE(spaces_are_those_of_unicode) {
  BOOST_TEST(marked("\\s", "a\u0085b\u180ec\u200bd\u3000")
             == "a[\u0085]b\u180ec\u200bd[\u3000]");
  BOOST_TEST(marked("[^\\s]", " \u180e") == " [\u180e]");
  BOOST_TEST(marked("[\\S]+", " \u180e a") == " [\u180e] [a]");
  BOOST_TEST(marked("\\w+", "a_e\u0301\u203fb-c") == "[a_e\u0301\u203fb]-[c]");
  BOOST_TEST(marked("\\d+", "x\u0661"
                            "1\u00b2")
             == "x[\u0661"
                "1]\u00b2");
  BOOST_TEST(marked("^a$", "a\nba\na") == "[a]\nba\n[a]");
}

BOOST_AUTO_TEST_CASE(constructs_with_another_meaning_are_refused) {
  for (const char* pattern :
       {"\\bx",   "\\h",    "(a)\\1",      "a{2}+",      "a{,3}",    "[a[bc]]",
        "[a&&b]", "\\",     "[[:alpha:]]", "(?<name>a)", "(?P<n>a)", "(*UTF)a",
        "\\pL",   "\\x1",   "[a",          "a(",         "\\X",      "\\R",
        "\\C",    "(?m:a)", "[\\W]"}) {
    const auto refused = regex::compile(pattern);
    BOOST_TEST(!refused, pattern);
    if (!refused)
      BOOST_TEST(refused.message().find(pattern) != std::string::npos,
                 refused.message());
  }
  BOOST_TEST(!regex::compile(""));
  BOOST_TEST(!regex::literal(""));
}

BOOST_AUTO_TEST_CASE(a_search_that_never_ends_is_given_up) {
  const auto hard = regex::compile("(?:a+)+[bc]");
  BOOST_REQUIRE(hard);
  std::vector<text_part> parts;
  const auto given_up = hard->find(std::string(64, 'a') + "d", parts);
  BOOST_REQUIRE(!given_up);
  BOOST_TEST(given_up.message().find("limit") != std::string::npos,
             given_up.message());
}

BOOST_AUTO_TEST_CASE(a_match_may_be_as_long_as_the_text) {
  std::vector<text_part> parts;
  const auto runs = regex::compile("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+");
  BOOST_REQUIRE(runs->find(std::string(3u << 20, ' '), parts));
  BOOST_TEST(parts.size() == 1u);
  parts.clear(); // one that needs more than the stack of compiled code
  const auto group = regex::compile("(?:\\s|x)+(?!\\S)");
  BOOST_REQUIRE(group->find(std::string(1u << 17, ' '), parts));
  BOOST_TEST(parts.size() == 1u);
}

BOOST_AUTO_TEST_CASE(delimiters_go_where_the_behaviour_says) {
  using enum split_behaviour;
  BOOST_TEST(pieces(isolated) == "the|-|final|-|-|countdown|");
  BOOST_TEST(pieces(removed) == "the|final|countdown|");
  BOOST_TEST(pieces(merged_with_previous) == "the-|final-|-|countdown|");
  BOOST_TEST(pieces(merged_with_next) == "the|-final|-|-countdown|");
  BOOST_TEST(pieces(contiguous) == "the|-|final|--|countdown|");
  BOOST_TEST(pieces(removed, true) == "-|-|-|");
}

BOOST_AUTO_TEST_CASE(lower_case_and_marks_are_unicodes) {
  BOOST_TEST(lower_case("\u0130A\u00c9\u03a3") == "i\u0307a\u00e9\u03c3");
  BOOST_TEST(without_marks("e\u0301x") == "ex");
  BOOST_TEST(*normalise("e\u0301\u212b", normal_form::nfc) == "\u00e9\u00c5");
  BOOST_TEST(*normalise("\ufb01", normal_form::nfkc) == "fi");
  BOOST_TEST(*normalise("\uac01", normal_form::nfd) == "\u1100\u1161\u11a8");
}

BOOST_AUTO_TEST_SUITE_END()
