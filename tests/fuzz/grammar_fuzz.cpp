// tests/fuzz/grammar_fuzz.cpp -- any bytes as a GBNF grammar, a regular expression
// or a JSON schema, chosen by the first byte; also behind a thought, as the rule of a
// served text that another peer sends.
//
// What is accepted gives texts without a dead end: each allowed token can be
// added, and while none is allowed, the text may end.
#include "runtime/core/assert.hpp"
#include "runtime/core/grammar/regex.hpp"
#include "runtime/core/grammar/token_masks.hpp"
#include "runtime/core/random.hpp"
#include "runtime/openai/rules/rule_compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

using namespace shoal;
using namespace shoal::core::grammar;

namespace {

/// Every byte, and some longer tokens.
std::shared_ptr<const token_list> vocabulary() {
  std::vector<std::string> texts;
  for (int byte = 0; byte != 256; ++byte)
    texts.emplace_back(1, static_cast<char>(byte));
  texts.insert(texts.end(),
               {"ab", "\": ", "}}", "[[", "\\u00", "12", "", ",,"});
  return std::make_shared<token_list>(std::move(texts));
}

model::result<grammar>
compiled(unsigned kind, unsigned thought, std::string_view text) {
  if (kind < 3) {
    constexpr core::rule_kind kinds[] = {core::rule_kind::grammar,
                                         core::rule_kind::json_schema,
                                         core::rule_kind::regex};
    return openai::compile_rule(
      openai::rule_of(kinds[kind], text, core::rule_thought(1 + thought)));
  }
  auto pattern = parse_regex(text, regex_use::json_string);
  if (!pattern)
    return pattern.why();
  rule_set rules;
  rules.add("pattern", *std::move(pattern));
  return compile(std::move(rules));
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto tokens = vocabulary();
  if (size == 0)
    return 0;
  auto made = compiled(data[0] % 4, data[0] / 4 % 3,
                       {reinterpret_cast<const char*>(data) + 1, size - 1});
  if (!made) {
    SHOAL_ASSERT(!made.message().empty());
    return 0;
  }
  if (made->nodes.size() > 5000)
    return 0;
  const auto masks = std::make_shared<token_masks>(*std::move(made), tokens);
  core::cluster::random r(size);
  constrained_text text(masks);
  token_set allowed(tokens->size());
  for (int step = 0; step != 30; ++step) {
    text.allowed(allowed);
    std::vector<token> choices;
    for (token t = 0; t != tokens->size(); ++t)
      if (allowed.has(t))
        choices.push_back(t);
    SHOAL_ASSERT(!choices.empty() || text.may_end() || text.lost());
    if (choices.empty())
      return 0;
    const bool added = text.add(choices[r.below(choices.size())]);
    SHOAL_ASSERT(added);
  }
  return 0;
}
