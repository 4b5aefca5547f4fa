// apps/model/text_grammar.cpp -- a schema, a grammar or a pattern, compiled.
#include "apps/model/text_grammar.hpp"

#include "runtime/core/grammar/gbnf.hpp" // pattern_bytes_max
#include "runtime/files/file_io.hpp"
#include "runtime/openai/rules/rule_compiler.hpp"

#include <algorithm>
#include <utility>

namespace shoal::apps {

model::result<std::shared_ptr<core::grammar::token_masks>>
grammar_of(const generate_command& o, const model::tokenizer* tokenizer,
           std::size_t vocabulary) {
  namespace g = core::grammar;
  const std::string& file = o.json_schema.empty() ? o.grammar : o.json_schema;
  if (file.empty() && !o.regex)
    return std::shared_ptr<g::token_masks>();
  const std::string option = o.regex                 ? "--regex"
                             : o.json_schema.empty() ? "--grammar"
                                                     : "--json-schema";
  const auto failed = [&](const std::string& why) {
    return model::failure{option + ": " + why};
  };
  if (tokenizer == nullptr)
    return failed("the model has no tokenizer");
  std::string text;
  if (!o.regex) {
    auto read = model::read_file(file, g::pattern_bytes_max);
    if (!read)
      return failed(read.message());
    text = std::move(*read);
  }
  const core::rule_kind kind = o.regex ? core::rule_kind::regex
                               : o.json_schema.empty()
                                 ? core::rule_kind::grammar
                                 : core::rule_kind::json_schema;
  auto compiled =
    openai::compile_rule(openai::rule_of(kind, o.regex ? *o.regex : text));
  if (!compiled)
    return failed((o.regex ? "" : file + ": ") + compiled.message());
  auto behind = tokenizer->token_bytes(), first = tokenizer->token_bytes(true);
  if (!behind || !first)
    return failed(behind ? first.message() : behind.message());
  for (auto* texts : {&*behind, &*first})
    texts->resize(std::min(texts->size(), vocabulary));
  return std::make_shared<g::token_masks>(
    *std::move(compiled),
    std::make_shared<g::token_list>(*std::move(behind), *std::move(first)));
}

} // namespace shoal::apps
