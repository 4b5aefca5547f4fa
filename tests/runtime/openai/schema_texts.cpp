// tests/runtime/openai/schema_texts.cpp -- random texts that schemas allow.
//
//   schema_texts COUNT < SCHEMAS      a schema on each line
//
// Writes a line for each schema: a JSON list of COUNT texts, or of one failure:
// {"error": "..."}. Texts grow by random tokens of a small vocabulary among those
// that are allowed; they end by chance where they may, and are hurried to their end
// when they get long.
#include "runtime/core/grammar/gbnf.hpp"
#include "runtime/core/grammar/token_masks.hpp"
#include "runtime/core/random.hpp"
#include "runtime/files/json.hpp"
#include "runtime/openai/rules/json_schema.hpp"

#include <cstdlib>
#include <iostream>

namespace {

using namespace shoal::core::grammar;
using draws = shoal::core::cluster::random;
using json = nlohmann::json;

std::shared_ptr<const token_list> vocabulary() {
  std::vector<std::string> texts;
  for (int c = 1; c != 256; ++c)
    texts.push_back({char(c)});
  texts.insert(texts.end(),
               {"\": ",     "\":",  "\",\"",  "\"}",      "\"]",
                "{\"",      "[\"",  "}}",     "]]",       "}, ",
                "], ",      "true", "false",  "null",     "tr",
                "ue",       "12",   "100",    "0.",       ".5",
                "-1",       "e+",   "name",   "value",    "id",
                "abc",      "a1",   "\\n",    "\\u",      "\\\"",
                "00",       "\n  ", "\n    ", ", ",       ": ",
                "{}",       "[]",   "\"\"",   "\xc3\xa9", "\xf0\x9f\x90\x9f",
                "\xe4\xb8", ""});
  return std::make_shared<token_list>(std::move(texts));
}

constexpr int tokens_soft = 120; ///< from here on it is hurried
constexpr int tokens_hard = 20'000;

bool ends_in_string(const std::string& text) {
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (inside && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      inside = !inside;
  return inside;
}

/// What ends a text soonest, roughly.
int haste(const std::string& text, bool in_string) {
  if (in_string)
    return text == "\""                                 ? 0
           : static_cast<unsigned char>(text[0]) < 0x80 ? 1
                                                        : 2;
  if (text == "}" || text == "]" || text == "null")
    return 0;
  if (text == "\"")
    return 1;
  return text == "," || text == "{" || text == "[" ? 3 : 2;
}

std::string text_of(const std::shared_ptr<token_masks>& masks, draws& r) {
  constrained_text t(masks);
  token_set allowed(masks->tokens().size());
  std::string out;
  for (int n = 0; n != tokens_hard; ++n) {
    if (t.may_end() && (n > tokens_soft || r.below(4) == 0))
      return out;
    t.allowed(allowed);
    std::vector<token> choices;
    const bool inside = n > tokens_soft && ends_in_string(out);
    int best = 99;
    for (token k = 0; k != masks->tokens().size(); ++k) {
      if (!allowed.has(k))
        continue;
      const int h =
        n > tokens_soft ? haste(masks->tokens().text(k), inside) : 0;
      if (h < best)
        choices.clear();
      best = std::min(best, h);
      if (h == best)
        choices.push_back(k);
    }
    if (choices.empty()) {
      if (t.may_end())
        return out;
      std::cerr << "a dead end after: " << out << "\n";
      std::exit(1);
    }
    const token next = choices[r.below(choices.size())];
    if (!t.add(next)) {
      std::cerr << "an allowed token is refused after: " << out << "\n";
      std::exit(1);
    }
    out += masks->tokens().text(next);
  }
  std::cerr << "no end of: " << out.substr(0, 200) << "\n";
  std::exit(1);
}

} // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 1;
  const auto tokens = vocabulary();
  draws r(1);
  for (std::string line; std::getline(std::cin, line);) {
    json out = json::array();
    const auto rules = shoal::openai::json_schema_rules(line);
    auto made =
      rules ? compile(*rules) : shoal::model::result<grammar>(rules.why());
    if (!made) {
      out = {{"error", made.message()}};
    } else {
      const auto masks =
        std::make_shared<token_masks>(*std::move(made), tokens);
      for (int k = 0; k != count; ++k)
        out.push_back(text_of(masks, r));
    }
    std::cout << shoal::model::json_text(out) << "\n";
  }
}
