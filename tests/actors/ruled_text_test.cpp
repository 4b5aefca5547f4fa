// tests/actors/ruled_text_test.cpp -- how texts end that keep to a rule.
#include "actors/serving/ruled_text.hpp"
#include "runtime/core/random.hpp"
#include "runtime/openai/rules/rule_compiler.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(ruled_texts)

using namespace shoal;
using namespace shoal::core::grammar;

namespace {

/// Words of letters up to "t"; "a" comes first.
std::shared_ptr<const token_list> many_words() {
  std::vector<std::string> texts{"a"};
  core::cluster::random r(9);
  while (texts.size() != 60'000) {
    std::string& text = texts.emplace_back();
    for (std::uint64_t n = 1 + r.below(9); n != 0; --n)
      text += char('a' + r.below(20));
  }
  return std::make_shared<token_list>(std::move(texts));
}

/// Words with hundreds of readings each, and texts of `end`s behind them.
std::string ambiguous(const std::string& end) {
  std::string out = "root ::= s* " + end + "\ns ::= [a] t0";
  for (int k = 1; k != 300; ++k)
    out += " | [a] t" + std::to_string(k);
  for (int k = 0; k != 300; ++k)
    out += "\nt" + std::to_string(k) + " ::= [a-z]* \"b\"?";
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_lost_text_is_complete_where_it_may_end) {
  const auto tokens = many_words();
  for (const bool may_end : {true, false}) {
    auto made = openai::compile_rule(openai::rule_of(
      core::rule_kind::grammar, ambiguous(may_end ? "" : "\".\"")));
    BOOST_REQUIRE(made);
    actors::ruled_text text(
      std::make_shared<token_masks>(*std::move(made), tokens), {}, {}, {});
    for (int n = 0; n != 20 && text.now() == actors::ruled_text::state::goes_on;
         ++n) {
      text.add(0);
      text.find_allowed();
    }
    BOOST_TEST((text.now()
                == (may_end ? actors::ruled_text::state::complete
                            : actors::ruled_text::state::stuck)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
