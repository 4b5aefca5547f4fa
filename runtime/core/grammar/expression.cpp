// runtime/core/grammar/expression.cpp -- makes trees; sets of code points.
#include "runtime/core/grammar/expression.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core::grammar {

expression literal(std::string text) {
  expression e;
  e.is = expression::kind::text;
  e.text = std::move(text);
  return e;
}

expression characters(std::vector<code_range> of) {
  expression e;
  e.is = expression::kind::characters;
  e.characters = std::move(of);
  return e;
}

expression sequence(std::vector<expression> parts) {
  expression e;
  e.is = expression::kind::sequence;
  e.parts = std::move(parts);
  return e;
}

expression choice(std::vector<expression> parts) {
  expression e;
  e.is = expression::kind::choice;
  e.parts = std::move(parts);
  return e;
}

expression
repetition(expression part, std::uint32_t least, std::uint32_t most) {
  expression e;
  e.is = expression::kind::repetition;
  e.parts.push_back(std::move(part));
  e.least = least;
  e.most = most;
  return e;
}

expression optional(expression part) {
  return repetition(std::move(part), 0, 1);
}

expression of_rule(rule_id rule) {
  expression e;
  e.is = expression::kind::rule;
  e.rule = rule;
  return e;
}

std::vector<code_range> all_but(std::vector<code_range> ranges) {
  std::ranges::sort(ranges, {}, &code_range::first);
  std::vector<code_range> out;
  char32_t next = 0;
  for (const code_range& r : ranges) {
    if (r.first > next)
      out.push_back({next, static_cast<char32_t>(r.first - 1)});
    next = std::max<char32_t>(next, r.last + 1);
  }
  if (next <= code_point_max)
    out.push_back({next, code_point_max});
  return out;
}

std::vector<code_range>
without(std::vector<code_range> ranges, std::vector<code_range> removed) {
  std::vector<code_range> out = all_but(std::move(ranges));
  out.insert(out.end(), removed.begin(), removed.end());
  return all_but(std::move(out));
}

rule_id rule_set::add(std::string name) {
  return add(std::move(name), choice({}));
}

rule_id rule_set::add(std::string name, expression body) {
  names.push_back(std::move(name));
  bodies.push_back(std::move(body));
  return static_cast<rule_id>(names.size() - 1);
}

} // namespace shoal::core::grammar
