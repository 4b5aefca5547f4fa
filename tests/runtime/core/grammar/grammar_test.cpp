// tests/runtime/core/grammar/grammar_test.cpp -- texts that a grammar allows.
#include "runtime/core/grammar/gbnf.hpp"
#include "runtime/core/grammar/grammar.hpp"
#include "runtime/core/grammar/regex.hpp"
#include "runtime/core/grammar/stacks.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <regex>

BOOST_AUTO_TEST_SUITE(grammars)

namespace {

using namespace shoal::core::grammar;

grammar compiled(rule_set rules) {
  auto made = compile(std::move(rules));
  if (!made)
    BOOST_FAIL(made.message());
  return *std::move(made);
}

grammar of_gbnf(std::string_view text) {
  auto rules = parse_gbnf(text);
  if (!rules)
    BOOST_FAIL(rules.message());
  return compiled(*std::move(rules));
}

grammar
of_regex(std::string_view pattern, regex_use use = regex_use::whole_text) {
  auto e = parse_regex(pattern, use);
  if (!e)
    BOOST_FAIL(e.message());
  rule_set rules;
  rules.add("root", *std::move(e));
  return compiled(std::move(rules));
}

bool matches(const grammar& g, std::string_view text) {
  stacks s(g);
  const position at = s.step(s.start(), text);
  return at != nowhere && s.may_end(at);
}

bool is_prefix(const grammar& g, std::string_view text) {
  stacks s(g);
  return s.step(s.start(), text) != nowhere;
}

struct sample {
  const char* pattern;
  std::vector<const char*> good, bad;
};
std::ostream& operator<<(std::ostream& out, const sample& s) {
  return out << s.pattern;
}

const sample gbnfs[] = {
  {"root ::= \"a\" | \"bc\"", {"a", "bc"}, {"", "b", "ab", "bcc"}},
  {"root ::= [a-c]+ \"!\"?", {"a", "cab", "b!"}, {"", "d", "!", "a!!"}},
  {"root ::= (\"a\" \"b\")*", {"", "ab", "abab"}, {"a", "aba"}},
  {"root ::= \"x\"{2,3}", {"xx", "xxx"}, {"x", "xxxx"}},
  {"root ::= \"x\"{2}", {"xx"}, {"x", "xxx"}},
  {"root ::= \"x\"{2,} # comment\n", {"xx", "xxxxx"}, {"x"}},
  {"root ::= \"x\"{,2}", {"", "xx"}, {"xxx"}},
  {"root ::= \"(\" root? \")\"", {"()", "((()))"}, {"(", "())", ""}},
  {"root ::= item (\",\" item)*\nitem ::= [0-9]\n  | \"-\" item",
   {"1", "1,-2,--3"},
   {",", "1,", "-"}},
  {"root ::= [^a-z\\n]",
   {"A", "\xc3\xa9", "\xf0\x9f\x90\x9f"},
   {"a", "\n", "\xc3", "AA"}},
  {"root ::= [\\u00e9-\\u4e00]",
   {"\xc3\xa9", "\xe4\xb8\x80"},
   {"\xc3\xa8", "\xe4\xb8\x81"}},
  {"root ::= .",
   {"a", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"},
   {"", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80", "ab"}},
  {"root ::= \"\\x41\\\"\\\\\"", {"A\"\\"}, {"A"}},
  {"root ::= (\n  \"a\" |\n  \"b\"\n) \"c\"", {"ac", "bc"}, {"c"}},
  {"a ::= \"1\" | \"2\" a\nroot ::= a a", {"11", "2121"}, {"1", "2"}},
  {"root ::= nothing \"a\"\nnothing ::= \"\" | \"b\"", {"a", "ba"}, {"b"}},
};

BOOST_DATA_TEST_CASE(gbnf_allows_its_texts_only, gbnfs, s) {
  const grammar g = of_gbnf(s.pattern);
  for (const char* text : s.good) {
    BOOST_TEST_CONTEXT(text) BOOST_TEST(matches(g, text));
    for (std::size_t n = 0; n <= std::string_view(text).size(); ++n)
      BOOST_TEST(is_prefix(g, std::string_view(text).substr(0, n)));
  }
  for (const char* text : s.bad)
    BOOST_TEST_CONTEXT(text) BOOST_TEST(!matches(g, text));
}

const struct {
  const char *text, *why;
} bad_gbnfs[] = {
  {"root = \"a\"", "line 1: expected ::= after the name of a rule"},
  {"root ::= \"a\"\nroot ::= \"b\"", "line 2: rule root is here a second time"},
  {"root ::= other", "line 1: there is no rule other"},
  {"other ::= \"a\"", "line 1: there is no rule root"},
  {"root ::= \"a", "line 1: it ends too early"},
  {"root ::= \"a\n\"", "line 1: a text without its end"},
  {"\n\nroot ::= (\"a\"", "line 3: expected )"},
  {"root ::= [z-a]", "line 1: a range from a later to an earlier character"},
  {"root ::= \"\\q\"", "line 1: an unknown escape"},
  {"root ::= \"a\"{5,2}", "line 1: a repetition from more to less"},
  {"root ::= \"a\"{99999}", "line 1: a repetition is at most 10000"},
  {"root ::= \"\\ud800\"", "line 1: this number is no character"},
  {"root ::= \"a\" )", "line 1: expected the end of the line"},
  {"root ::= \"\xff\"", "it is not UTF-8"},
};

BOOST_AUTO_TEST_CASE(a_wrong_gbnf_is_refused_by_its_line) {
  for (const auto& [text, why] : bad_gbnfs)
    BOOST_TEST_CONTEXT(text) {
      const auto made = parse_gbnf(text);
      BOOST_REQUIRE(!made);
      BOOST_TEST(made.message() == why);
    }
  const std::string deep(1000, '(');
  BOOST_TEST(parse_gbnf("root ::= " + deep).message()
             == "line 1: it is nested too deeply");
}

BOOST_AUTO_TEST_CASE(what_cannot_be_an_automaton_is_refused) {
  const auto why = [](const char* text) {
    auto rules = parse_gbnf(text);
    BOOST_REQUIRE(rules);
    const auto made = compile(*std::move(rules));
    return made ? std::string("made") : made.message();
  };
  BOOST_TEST(why("root ::= \"a\" root") == "no text can ever match rule root");
  BOOST_TEST(why("root ::= []") == "no text can ever match rule root");
  BOOST_TEST(why("root ::= root \"a\" | \"b\"")
               .starts_with("rule root can begin with itself"));
  BOOST_TEST(why("root ::= x\nx ::= y? z\ny ::= \"y\"\nz ::= x \"a\" | \"b\"")
               .find("can begin with itself")
             != std::string::npos);
  BOOST_TEST(why("root ::= (\"a\"?)* \"b\"") == "made");
  BOOST_TEST(why("root ::= [a-z]{10000} [a-z]{10000} [a-z]{10000} "
                 "([a-z]{10000} [0-9]{10000}){10000} [^x]{10000} [^y]{10000}"
                 " [^z]{10000} [^z]{10000} [^z]{10000} [^z]{10000}")
               .starts_with("the grammar is too large"));
}

const sample regexes[] = {
  {"abc", {"abc"}, {"ab", "xabc", "abcd"}},
  {"^a|b$", {"a", "b"}, {"ab"}},
  {"(a|b)*c+", {"c", "abac", "bcc"}, {"ab", ""}},
  {"[a-f0-9]{2,4}", {"a0", "ffff"}, {"a", "fffff", "g0"}},
  {"\\d+\\.\\d{2}", {"1.25", "100.00"}, {"1.2", ".25"}},
  {"(?:ab)?(?<n>c)", {"c", "abc"}, {"ab"}},
  {"[^\\d\\s]+?", {"ab-"}, {"a1", " "}},
  {"\\w[\\w.-]*@\\w+", {"a.b@c"}, {"@c", "a@"}},
  {".", {"a", "\xc3\xa9"}, {"\n", ""}},
  {"[]a]?x|\\u0041\\x42", {"AB"}, {"]x"}},
  {"a{,3}", {"", "aaa"}, {"aaaa"}},
  {"a{b}", {"a{b}"}, {"ab"}},
  {"", {""}, {"a"}},
  {"a||b", {"a", "", "b"}, {"ab"}},
};

BOOST_DATA_TEST_CASE(a_regex_allows_its_texts_only, regexes, s) {
  const grammar g = of_regex(s.pattern);
  for (const char* text : s.good)
    BOOST_TEST_CONTEXT(text) BOOST_TEST(matches(g, text));
  for (const char* text : s.bad)
    BOOST_TEST_CONTEXT(text) BOOST_TEST(!matches(g, text));
}

// The library's matcher is the judge of random texts over a small alphabet.
BOOST_AUTO_TEST_CASE(regexes_agree_with_another_matcher) {
  const char* patterns[] = {"a*b|ba*",         "(ab|a)(bc|c)?", "(a|b){2,5}c?",
                            "[ab]*c[^a]{1,2}", "((a?b)*c)*",    "a+(b+c+)*a?",
                            "(a*)*b",          "(|a|bb){3}c"};
  for (const char* pattern : patterns) {
    const grammar g = of_regex(pattern);
    const std::regex judge(pattern);
    for (unsigned n = 0; n != 4000; ++n) {
      std::string text;
      for (unsigned k = n; k != 0; k /= 4)
        if (k % 4 != 3)
          text += char('a' + k % 4);
      BOOST_TEST_CONTEXT(pattern << " and '" << text << "'")
      BOOST_REQUIRE_EQUAL(matches(g, text), std::regex_match(text, judge));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_regex_that_is_not_understood_is_refused) {
  const std::pair<const char*, const char*> bad[] = {
    {"a(b", "character 3: expected )"},
    {"a)", "character 1: a ) without its ("},
    {"*a", "character 0: there is nothing to repeat"},
    {"a**", "character 2: there is nothing to repeat"},
    {"a++", "character 2: possessive repetitions are not understood"},
    {"(?=a)", "character 2: of the groups that begin with (? only (?: and "
              "(?<name> are understood"},
    {"(?<!a)b", "character 3: of the groups that begin with (? only (?: and "
                "(?<name> are understood"},
    {"\\1", "character 2: an escape that is not understood"},
    {"\\bword", "character 2: an escape that is not understood"},
    {"a^b", "character 1: ^ is understood at the start of a branch only"},
    {"a$b", "character 2: $ is understood at the end of a branch only"},
    {"[b-a]", "character 4: a range from a later to an earlier character"},
    {"[a-\\d]", "character 5: a range needs a character at its end"},
    {"[a", "character 2: it ends too early"},
  };
  for (const auto& [pattern, why] : bad)
    BOOST_TEST_CONTEXT(pattern) {
      const auto made = parse_regex(pattern, regex_use::whole_text);
      BOOST_REQUIRE(!made);
      BOOST_TEST(made.message() == why);
    }
}

BOOST_AUTO_TEST_CASE(in_a_json_string_a_regex_finds_escaped_characters) {
  const grammar quote = of_regex("^a\"b\\\\c\n$", regex_use::json_string);
  BOOST_TEST(matches(quote, "a\\\"b\\\\c\\n"));
  BOOST_TEST(!matches(quote, "a\"b\\c\n"));
  const grammar found = of_regex("b+", regex_use::json_string);
  BOOST_TEST(matches(found, "aabbcc"));
  BOOST_TEST(matches(found, "\\tb\\u0001"));
  BOOST_TEST(!matches(found, "aacc"));
}

BOOST_AUTO_TEST_CASE(stacks_are_no_deeper_than_needed) {
  // A list that ends with itself needs no deeper stack for more elements.
  const grammar list = of_gbnf("root ::= \"a\" root | \"b\"");
  stacks s(list);
  position at = s.start();
  for (int k = 0; k != 100'000; ++k)
    at = s.step(at, 'a');
  BOOST_TEST(at != nowhere);
  BOOST_TEST(s.bytes() < 100'000u);
  // Brackets go as deep as the text.
  const grammar deep = of_gbnf("root ::= \"(\" root \")\" | \"x\"");
  stacks d(deep);
  at = d.step(d.start(), std::string(10'000, '('));
  at = d.step(d.step(at, 'x'), std::string(9'999, ')'));
  BOOST_TEST(!d.may_end(at));
  BOOST_TEST(d.may_end(d.step(at, ')')));
  // A copy has the same stacks.
  stacks copy(deep);
  at = d.copy_to(copy, at);
  BOOST_TEST(!copy.may_end(at));
  BOOST_TEST(copy.may_end(copy.step(at, ')')));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
