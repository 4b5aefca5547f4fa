// tests/fuzz/grammar_fuzz.cpp -- any bytes as a GBNF grammar, a regular expression
// or a JSON schema, chosen by the first byte.
//
// What is accepted gives texts without a dead end: each allowed token can be
// added, and while none is allowed, the text may end.
#include "runtime/core/assert.hpp"
#include "runtime/core/grammar/gbnf.hpp"
#include "runtime/core/grammar/regex.hpp"
#include "runtime/core/grammar/token_masks.hpp"
#include "runtime/core/random.hpp"
#include "runtime/openai/rules/json_schema.hpp"

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

model::result<rule_set> parsed(unsigned kind, std::string_view text) {
  if (kind == 0)
    return parse_gbnf(text);
  if (kind == 1)
    return openai::json_schema_rules(text);
  auto pattern = parse_regex(text, kind == 2 ? regex_use::whole_text
                                             : regex_use::json_string);
  if (!pattern)
    return pattern.why();
  rule_set rules;
  rules.add("pattern", *std::move(pattern));
  return rules;
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto tokens = vocabulary();
  if (size == 0)
    return 0;
  auto rules =
    parsed(data[0] % 4, {reinterpret_cast<const char*>(data) + 1, size - 1});
  if (!rules) {
    SHOAL_ASSERT(!rules.message().empty());
    return 0;
  }
  auto compiled = compile(*std::move(rules));
  if (!compiled || compiled->nodes.size() > 5000)
    return 0;
  const auto masks =
    std::make_shared<token_masks>(*std::move(compiled), tokens);
  core::cluster::random r(size);
  constrained_text text(masks);
  token_set allowed(tokens->size());
  for (int step = 0; step != 30; ++step) {
    text.allowed(allowed);
    std::vector<token> choices;
    for (token t = 0; t != tokens->size(); ++t)
      if (allowed.has(t))
        choices.push_back(t);
    SHOAL_ASSERT(!choices.empty() || text.may_end());
    if (choices.empty())
      return 0;
    const bool added = text.add(choices[r.below(choices.size())]);
    SHOAL_ASSERT(added);
  }
  return 0;
}
