// tests/runtime/core/grammar/drawn_grammars_test.cpp -- drawn grammars, many of them
// ambiguous, allow what a search through their trees finds.
#include "runtime/core/grammar/grammar.hpp"
#include "runtime/core/grammar/stacks.hpp"
#include "runtime/core/random.hpp"

#include <boost/test/unit_test.hpp>

#include <map>
#include <set>
#include <string>
#include <tuple>

BOOST_AUTO_TEST_SUITE(drawn_grammars)

namespace {

using namespace shoal::core::grammar;
using draws = shoal::core::cluster::random;

const std::string letters = "ab(";
constexpr std::size_t letters_max = 6;

class drawn {
public:
  explicit drawn(std::uint64_t seed) : r_(seed) {
    const auto count = 1 + r_.below(4);
    for (std::uint64_t k = 0; k != count; ++k)
      rules_.add("rule " + std::to_string(k));
    for (expression& body : rules_.bodies)
      body = part(0);
  }
  const rule_set& rules() const { return rules_; }

private:
  expression part(int depth) {
    switch (r_.below(depth > 3 ? 2 : 8)) {
    case 0:
      return literal(std::string(r_.below(3), letter()));
    case 1:
      return characters({{U'a', U'a' + char32_t(r_.below(2))}});
    case 2:
    case 3:
      return sequence(parts(depth));
    case 4:
    case 5:
      return choice(parts(depth));
    case 6: {
      const auto least = std::uint32_t(r_.below(3));
      return repetition(part(depth + 1), least,
                        r_.below(2) == 0 ? unbounded
                                         : least + std::uint32_t(r_.below(2)));
    }
    default:
      return of_rule(rule_id(r_.below(rules_.bodies.size())));
    }
  }
  std::vector<expression> parts(int depth) {
    std::vector<expression> out;
    for (auto n = 1 + r_.below(3); n != 0; --n)
      out.push_back(part(depth + 1));
    return out;
  }
  char letter() { return letters[r_.below(letters.size())]; }

  draws r_;
  rule_set rules_;
};

/// Where a part that begins at a place of a text may end.
class search {
public:
  search(const rule_set& rules, std::string text)
    : rules_(rules), text_(std::move(text)) {}

  bool matches() {
    return ends(rules_.bodies.front(), 0).contains(text_.size());
  }

private:
  using places = std::set<std::size_t>;

  places ends(const expression& e, std::size_t at) {
    switch (e.is) {
    case expression::kind::text:
      return text_.compare(at, e.text.size(), e.text) == 0
               ? places{at + e.text.size()}
               : places{};
    case expression::kind::characters:
      for (const code_range& c : e.characters)
        if (at < text_.size() && c.first <= char32_t(text_[at])
            && char32_t(text_[at]) <= c.last)
          return {at + 1};
      return {};
    case expression::kind::sequence: {
      places out{at};
      for (const expression& part : e.parts)
        out = after(out, part);
      return out;
    }
    case expression::kind::choice: {
      places out;
      for (const expression& part : e.parts)
        out.merge(ends(part, at));
      return out;
    }
    case expression::kind::repetition: {
      places out, reached{at};
      // Texts are short: what is repeated more often is nothing.
      const std::uint32_t most = std::min(e.most, e.least + 10);
      for (std::uint32_t n = 0; n <= most; ++n) {
        if (n >= e.least)
          out.insert(reached.begin(), reached.end());
        reached = after(reached, e.parts.front());
      }
      return out;
    }
    case expression::kind::rule:
      break;
    }
    const auto key = std::pair(e.rule, at);
    if (const auto known = known_.find(key); known != known_.end())
      return known->second;
    known_[key]; // what begins with itself never ends
    return known_[key] = ends(rules_.bodies[e.rule], at);
  }
  places after(const places& all, const expression& part) {
    places out;
    for (const std::size_t at : all)
      out.merge(ends(part, at));
    return out;
  }

  const rule_set& rules_;
  std::string text_;
  std::map<std::pair<rule_id, std::size_t>, places> known_;
};

void each_text(auto f) {
  std::vector<std::string> all{""};
  for (std::size_t k = 0; k != all.size(); ++k) {
    f(all[k]);
    if (all[k].size() < letters_max)
      for (const char c : letters)
        all.push_back(all[k] + c);
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(texts_are_allowed_that_a_search_finds) {
  int made = 0, allowed = 0;
  for (std::uint64_t seed = 0; seed != 400; ++seed) {
    const drawn d(seed);
    const auto g = compile(d.rules());
    if (!g) // it begins with itself, or never ends
      continue;
    ++made;
    stacks s(*g), copy(*g);
    each_text([&](const std::string& text) {
      const bool good = search(d.rules(), text).matches();
      allowed += good;
      BOOST_TEST_CONTEXT("seed " << seed << ", " << text) {
        BOOST_REQUIRE_EQUAL(s.may_end(s.step(s.start(), text)), good);
        // A copy halfway goes on alike.
        const position half = s.step(s.start(), text.substr(0, 3));
        const position same = half == nowhere ? nowhere : s.copy_to(copy, half);
        const auto rest = text.substr(std::min<std::size_t>(text.size(), 3));
        BOOST_REQUIRE_EQUAL(copy.may_end(copy.step(same, rest)), good);
      }
    });
  }
  BOOST_TEST(made > 200);
  BOOST_TEST(allowed > 5 * made);
}

BOOST_AUTO_TEST_SUITE_END()
