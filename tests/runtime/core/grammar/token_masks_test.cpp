// tests/runtime/core/grammar/token_masks_test.cpp -- which tokens are allowed:
// as many as single steps allow, after any text.
#include "runtime/core/grammar/gbnf.hpp"
#include "runtime/core/grammar/token_masks.hpp"
#include "runtime/core/random.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <set>

BOOST_AUTO_TEST_SUITE(token_masks_of_texts)

namespace {

using namespace shoal::core::grammar;
using random = shoal::core::cluster::random;

grammar of_gbnf(const std::string& text) {
  auto rules = parse_gbnf(text);
  if (!rules)
    BOOST_FAIL(rules.message());
  auto made = compile(*std::move(rules));
  if (!made)
    BOOST_FAIL(made.message());
  return *std::move(made);
}

/// All texts of up to three letters, and some longer ones; the last is none.
std::shared_ptr<const token_list> small_vocabulary() {
  std::vector<std::string> texts;
  const std::string letters = "ab,[]\"";
  for (char a : letters) {
    texts.push_back({a});
    for (char b : letters) {
      texts.push_back({a, b});
      for (char c : letters)
        texts.push_back({a, b, c});
    }
  }
  texts.insert(texts.end(), {"[[[[", "aaaaaa", "\",\"a\",", "]]]],", "a", ""});
  return std::make_shared<token_list>(std::move(texts));
}

const char* const grammars[] = {
  "root ::= \"[\" (root (\",\" root)*)? \"]\" | \"\\\"\" [ab]* \"\\\"\" | "
  "\"a\"",
  "root ::= x+\nx ::= \"a\" | \"ab\" | \"b\" y\ny ::= \",\" x \"]\" | \"a\"?",
  "root ::= [ab]{3,7} (\",\" [ab]{2}){0,3}",
  "root ::= \"a\"* \"b\"? | \"[\" (\"a\" | \",\"){2,} \"]\"",
  // Ambiguous ones:
  "root ::= \"[\" x \"]\" | \"[\" y \",\" | \"a\"\nx ::= root | \"b\"\n"
  "y ::= root | \"b\" y?",
  "root ::= x x?\nx ::= \"[\" x? x? \"]\"? | \"a\" \"b\"*",
};

BOOST_DATA_TEST_CASE(the_allowed_tokens_are_those_that_steps_allow, grammars,
                     text) {
  const auto tokens = small_vocabulary();
  const auto masks = std::make_shared<token_masks>(of_gbnf(text), tokens);
  stacks judge(masks->rules());
  random r(7);
  for (int run = 0; run != 40; ++run) {
    constrained_text t(masks);
    position at = judge.start();
    for (int step = 0; step != 12; ++step) {
      token_set allowed(tokens->size());
      t.allowed(allowed);
      std::vector<token> choices;
      for (token k = 0; k != tokens->size(); ++k) {
        const bool good = !tokens->text(k).empty()
                          && judge.step(at, tokens->text(k)) != nowhere;
        BOOST_REQUIRE_EQUAL(allowed.has(k), good);
        if (good)
          choices.push_back(k);
      }
      BOOST_REQUIRE_EQUAL(t.may_end(), judge.may_end(at));
      BOOST_REQUIRE(!choices.empty() || t.may_end()); // no dead end
      if (choices.empty())
        break;
      const token next = choices[r.below(choices.size())];
      BOOST_REQUIRE(t.add(next));
      at = judge.step(at, tokens->text(next));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_token_that_is_not_allowed_changes_nothing) {
  const auto tokens = small_vocabulary();
  constrained_text t(
    std::make_shared<token_masks>(of_gbnf("root ::= \"ab\""), tokens));
  const auto find = [&](const std::string& text) {
    token k = 0;
    while (tokens->text(k) != text)
      ++k;
    return k;
  };
  BOOST_TEST(!t.add(find("b")));
  BOOST_TEST(!t.add(find("")));
  BOOST_TEST(!t.add(static_cast<token>(tokens->size())));
  BOOST_TEST(!t.may_end());
  BOOST_TEST(t.add(find("ab")));
  BOOST_TEST(t.may_end());
  token_set allowed(tokens->size());
  t.allowed(allowed);
  BOOST_TEST(allowed.empty());
}

BOOST_AUTO_TEST_CASE(a_long_text_keeps_little_memory) {
  const auto tokens = small_vocabulary();
  const auto masks =
    std::make_shared<token_masks>(of_gbnf(grammars[0]), tokens);
  constrained_text t(masks);
  token_set allowed(tokens->size());
  random r(3);
  // It never closes its outermost bracket; positions are made anew on the way.
  token open = 0;
  while (tokens->text(open) != "[")
    ++open;
  BOOST_REQUIRE(t.add(open));
  for (int step = 0; step != 20'000 && !t.may_end(); ++step) {
    t.allowed(allowed);
    std::vector<token> choices;
    for (token k = 0; k != tokens->size(); ++k)
      if (allowed.has(k) && tokens->text(k).find(']') == std::string::npos)
        choices.push_back(k);
    if (choices.empty())
      for (token k = 0; k != tokens->size(); ++k)
        if (allowed.has(k))
          choices.push_back(k);
    BOOST_REQUIRE(!choices.empty());
    BOOST_REQUIRE(t.add(choices[r.below(choices.size())]));
  }
}

/// Three hundred ways to read each text, for a vocabulary of thousands of tokens.
BOOST_AUTO_TEST_CASE(a_text_of_too_many_meanings_is_lost_and_not_computed) {
  std::vector<std::string> texts;
  random r(9);
  for (int k = 0; k != 60'000; ++k) {
    std::string& text = texts.emplace_back();
    for (std::uint64_t n = 1 + r.below(9); n != 0; --n)
      text += char('a' + r.below(20));
  }
  const auto tokens = std::make_shared<token_list>(std::move(texts));
  std::string grammar = "root ::= s*\ns ::= [a] t0";
  for (int k = 1; k != 300; ++k)
    grammar += " | [a] t" + std::to_string(k);
  for (int k = 0; k != 300; ++k)
    grammar += "\nt" + std::to_string(k) + " ::= [a-z]* \"b\"?";
  constrained_text t(std::make_shared<token_masks>(of_gbnf(grammar), tokens));
  token_set allowed(tokens->size());
  for (token k = 0; !t.lost() && k != tokens->size(); ++k)
    if (tokens->text(k).starts_with("a") && t.add(k))
      t.allowed(allowed);
  BOOST_TEST(t.lost());
  BOOST_TEST(allowed.empty());
}

/// Each bracket is of two kinds until it is closed.
BOOST_AUTO_TEST_CASE(stacks_that_double_with_each_bracket_are_few) {
  const auto tokens = small_vocabulary();
  const auto masks = std::make_shared<token_masks>(
    of_gbnf("root ::= \"[\" x \"]\" | \"[\" y \",\" | \"a\"\n"
            "x ::= root | \"b\"\ny ::= root | \"\\\"\""),
    tokens);
  constrained_text t(masks);
  token_set allowed(tokens->size());
  const auto find = [&](const std::string& text) {
    token k = 0;
    while (tokens->text(k) != text)
      ++k;
    return k;
  };
  constexpr int depth = 500;
  for (int k = 0; k != depth; ++k) {
    t.allowed(allowed);
    BOOST_REQUIRE(!t.lost());
    BOOST_TEST(allowed.has(find("[[[[")));
    BOOST_REQUIRE(t.add(find("[")));
  }
  BOOST_REQUIRE(t.add(find("a")));
  for (int k = 0; k != depth; ++k) {
    t.allowed(allowed);
    BOOST_TEST(allowed.has(find("]")));
    BOOST_TEST(allowed.has(find(",")));
    BOOST_TEST(!allowed.has(find("a")));
    BOOST_TEST(!t.may_end());
    BOOST_REQUIRE(t.add(find(k % 3 == 0 ? "]" : ",")));
  }
  BOOST_TEST(t.only_ends());
}

/// Texts with more stacks than are kept are lost, and not allowed in part.
BOOST_AUTO_TEST_CASE(a_text_of_too_many_stacks_is_lost) {
  const auto tokens = small_vocabulary();
  for (const std::size_t count : {stacks_max / 2, stacks_max / 4 * 5}) {
    std::string grammar = "root ::= \"a\" s\ns ::= [a] t0";
    for (std::size_t k = 1; k != count; ++k)
      grammar += " | [a] t" + std::to_string(k);
    for (std::size_t k = 0; k != count; ++k)
      grammar += "\nt" + std::to_string(k) + " ::= [b]{" + std::to_string(k % 9)
                 + "} \",\"";
    const auto masks = std::make_shared<token_masks>(of_gbnf(grammar), tokens);
    constrained_text t(masks);
    token_set allowed(tokens->size());
    token a = 0;
    while (tokens->text(a) != "a")
      ++a;
    for (int k = 0; k != 2; ++k) {
      t.allowed(allowed);
      static_cast<void>(t.add(a));
    }
    t.allowed(allowed);
    BOOST_TEST(t.lost() == (count > stacks_max));
    BOOST_TEST(allowed.empty() == t.lost());
  }
}

/// Rules that come after "[", each of which takes a byte.
std::string wide_rule(const std::string& name, std::size_t count) {
  std::string out = "\n" + name + " ::= \"[\" (" + name + "0";
  for (std::size_t k = 1; k != count; ++k)
    out += " | " + name + std::to_string(k);
  out += ")";
  for (std::size_t k = 0; k != count; ++k)
    out += "\n" + name + std::to_string(k) + " ::= [a] \",\"";
  return out;
}

BOOST_AUTO_TEST_CASE(a_token_over_the_limit_is_refused_by_itself) {
  const auto tokens = small_vocabulary();
  const auto masks = std::make_shared<token_masks>(
    of_gbnf("root ::= \"a\" (w | \"b\")" + wide_rule("w", stacks_max + 1)),
    tokens);
  const auto find = [&](const std::string& text) {
    token k = 0;
    while (tokens->text(k) != text)
      ++k;
    return k;
  };
  constrained_text t(masks);
  token_set allowed(tokens->size());
  t.allowed(allowed);
  BOOST_TEST(!t.lost());
  BOOST_TEST(allowed.has(find("a")));
  BOOST_TEST(allowed.has(find("ab")));
  BOOST_TEST(!allowed.has(find("a[")));
  BOOST_REQUIRE(t.add(find("a")));
  t.allowed(allowed);
  BOOST_TEST(!t.lost());
  BOOST_TEST(allowed.has(find("b")));
  BOOST_TEST(!allowed.has(find("[")));
}

/// Two readings of a text are too many stacks together, and each alone is not.
BOOST_AUTO_TEST_CASE(a_text_goes_on_with_one_of_its_readings) {
  const auto tokens = small_vocabulary();
  const auto masks = std::make_shared<token_masks>(
    of_gbnf("root ::= [a] v | [a] w" + wide_rule("v", stacks_max * 3 / 4)
            + wide_rule("w", stacks_max * 3 / 4)),
    tokens);
  const auto find = [&](const std::string& text) {
    token k = 0;
    while (tokens->text(k) != text)
      ++k;
    return k;
  };
  constrained_text t(masks);
  token_set allowed(tokens->size());
  for (const char* next : {"a", "[", "a", ","}) {
    t.allowed(allowed);
    BOOST_REQUIRE(!t.lost());
    BOOST_REQUIRE(allowed.has(find(next)));
    BOOST_REQUIRE(t.add(find(next)));
  }
  BOOST_TEST(t.only_ends());
}

/// Decoders leave out the space before the first word.
BOOST_AUTO_TEST_CASE(the_first_token_has_a_text_of_its_own) {
  const auto tokens = std::make_shared<token_list>(
    std::vector<std::string>{" a", "a", "b", " ", "", "ab"},
    std::vector<std::string>{"a", "##a", "b", "", "", "ab"});
  const auto masks =
    std::make_shared<token_masks>(of_gbnf("root ::= [ab]+ \" a\"?"), tokens);
  constrained_text t(masks);
  token_set allowed(tokens->size());
  const auto shown = [&] {
    t.allowed(allowed);
    std::string out;
    for (token k = 0; k != tokens->size(); ++k)
      out += allowed.has(k) ? '1' : '0';
    return out;
  };
  BOOST_TEST(shown() == "101001");
  BOOST_TEST(!t.add(1));
  BOOST_TEST(!t.add(3));
  BOOST_REQUIRE(t.add(0));
  BOOST_TEST(shown() == "111101");
  BOOST_REQUIRE(t.add(0));
  BOOST_TEST(t.only_ends());
}

/// The characters of a string of limited length: each place of it is a node, but
/// tokens do the same from most.
BOOST_AUTO_TEST_CASE(places_of_a_counted_part_are_few_classes) {
  const grammar g = of_gbnf("root ::= \"<\" [^<>]{0,500} \">\"");
  const auto classes = classes_of(g);
  const std::set<node_id> different(classes.begin(), classes.end());
  BOOST_TEST(g.nodes.size() > 500u);
  BOOST_TEST(different.size() < 20 * class_bytes);
  // Short texts do the same from a node and from its class.
  stacks s(g);
  random r(4);
  for (node_id n = 0; n != g.nodes.size(); ++n) {
    position a = s.on_unknown(n), b = s.on_unknown(classes[n]);
    for (std::size_t k = 0; k != class_bytes; ++k) {
      const char* const letters = "a\xc3\xa9<>";
      const auto byte = static_cast<std::uint8_t>(letters[r.below(5)]);
      a = s.step(a, byte);
      b = s.step(b, byte);
      BOOST_REQUIRE((a == nowhere) == (b == nowhere));
      if (k + 1 != class_bytes)
        BOOST_REQUIRE(s.is_open(a) == s.is_open(b));
    }
  }
}

/// Also tokens of more bytes than the classes are for.
BOOST_AUTO_TEST_CASE(long_tokens_are_tried_at_each_place) {
  std::vector<std::string> texts{"<", ">"};
  for (std::size_t n = 1; n != 70; ++n)
    texts.emplace_back(n, 'a');
  const auto tokens = std::make_shared<token_list>(std::move(texts));
  const auto masks = std::make_shared<token_masks>(
    of_gbnf("root ::= \"<\" [a-z]{0,60} \">\""), tokens);
  constrained_text t(masks);
  token_set allowed(tokens->size());
  BOOST_REQUIRE(t.add(0));
  for (std::size_t left = 60;; --left) {
    t.allowed(allowed);
    for (token k = 2; k != tokens->size(); ++k)
      BOOST_REQUIRE_EQUAL(allowed.has(k), tokens->text(k).size() <= left);
    BOOST_REQUIRE(allowed.has(1));
    if (left == 0)
      break;
    BOOST_REQUIRE(t.add(2));
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
