// tests/fuzz/grammar_fuzz.cpp -- any bytes as a GBNF grammar, a regular expression,
// a JSON schema, or a rule of calls, chosen by the first byte; also behind a thought, as
// the rule of a served text that another peer sends. Of calls also: a form, and a
// tool's name and schema, as a gateway makes them a rule.
//
// What is accepted gives texts without a dead end: each allowed token can be
// added, and while none is allowed, the text may end.
#include "runtime/core/assert.hpp"
#include "runtime/core/grammar/regex.hpp"
#include "runtime/core/grammar/token_masks.hpp"
#include "runtime/core/random.hpp"
#include "runtime/openai/rules/call_rule.hpp"
#include "runtime/openai/rules/rule_compiler.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
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
  for (const char* mark : openai::special_marks)
    texts.push_back(openai::mark_bytes(mark));
  return std::make_shared<token_list>(std::move(texts));
}

/// What the first bytes say of calls; a line with a name; a schema.
std::string calls(std::string_view text) {
  openai::call_rule rule;
  const unsigned how = text.empty() ? 0 : static_cast<unsigned char>(text[0]);
  text.remove_prefix(std::min<std::size_t>(text.size(), 1));
  rule.form = openai::call_form(1 + how % 4);
  rule.must = how / 4 % 2 != 0;
  rule.many = how / 8 % 2 != 0;
  const std::size_t line = std::min(text.find('\n'), text.size());
  rule.tools.push_back(
    {std::string(text.substr(0, line)), std::string(text.substr(line))});
  rule.tools.push_back({"other", std::nullopt});
  return openai::text_of(rule);
}

constexpr unsigned kinds = 6;

model::result<grammar>
compiled(unsigned kind, unsigned thought, std::string_view text) {
  constexpr core::rule_kind of_rules[] = {
    core::rule_kind::grammar, core::rule_kind::json_schema,
    core::rule_kind::regex, core::rule_kind::calls, core::rule_kind::calls};
  if (kind < std::size(of_rules))
    return openai::compile_rule(
      openai::rule_of(of_rules[kind], kind == 4 ? calls(text) : text,
                      core::rule_thought(1 + thought)));
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
  auto made = compiled(data[0] % kinds, data[0] / kinds % 3,
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
