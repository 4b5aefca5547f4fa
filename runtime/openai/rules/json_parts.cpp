// runtime/openai/rules/json_parts.cpp -- strings, gaps, and strings that are not some.
#include "runtime/openai/rules/json_parts.hpp"

#include <span>
#include <utility>
#include <vector>

namespace shoal::openai {

namespace g = core::grammar;
using g::expression;

namespace {

const std::vector<g::code_range> plain_in_string{
  {0x20, 0x21}, {0x23, 0x5b}, {0x5d, g::code_point_max}};

expression hex_digit() {
  return g::characters({{U'0', U'9'}, {U'A', U'F'}, {U'a', U'f'}});
}

} // namespace

expression string_character() {
  const expression low = g::sequence(
    {g::characters(
       {{U'0', U'9'}, {U'A', U'C'}, {U'E', U'F'}, {U'a', U'c'}, {U'e', U'f'}}),
     hex_digit(), hex_digit(), hex_digit()});
  const expression below_surrogates =
    g::sequence({g::characters({{U'D', U'D'}, {U'd', U'd'}}),
                 g::characters({{U'0', U'7'}}), hex_digit(), hex_digit()});
  return g::choice(
    {g::characters(plain_in_string),
     g::sequence(
       {g::literal("\\"),
        g::choice({g::characters({{U'"', U'"'},
                                  {U'\\', U'\\'},
                                  {U'/', U'/'},
                                  {U'b', U'b'},
                                  {U'f', U'f'},
                                  {U'n', U'n'},
                                  {U'r', U'r'},
                                  {U't', U't'}}),
                   g::sequence({g::literal("u"),
                                g::choice({low, below_surrogates})})})})});
}

expression quoted(expression inner) {
  return g::sequence({g::literal("\""), std::move(inner), g::literal("\"")});
}

expression any_string() {
  return quoted(g::repetition(string_character(), 0));
}

expression gap() {
  constexpr std::uint32_t indent_max = 20;
  return g::optional(g::choice(
    {g::literal(" "),
     g::sequence({g::literal("\n"),
                  g::repetition(g::characters({{U' ', U' '}, {U'\t', U'\t'}}),
                                0, indent_max)})}));
}

namespace {

/// What may follow the first `depth` characters of all of these names, which are the
/// same, so that none of the names comes out.
/// @param names ascending, each once
expression none_of(std::span<const std::u32string> names, std::size_t depth) {
  std::vector<expression> ways;
  if (names.empty() || names.front().size() > depth)
    ways.push_back(g::literal(""));
  else
    names = names.subspan(1);
  std::vector<g::code_range> taken;
  while (!names.empty()) {
    const char32_t next = names.front()[depth];
    std::size_t same = 1;
    while (same != names.size() && names[same][depth] == next)
      ++same;
    taken.push_back({next, next});
    if (next >= U' ' && next != U'"'
        && next != U'\\') { // else it needs an escape
      std::vector<expression> way;
      way.push_back(g::characters({{next, next}}));
      way.push_back(none_of(names.first(same), depth + 1));
      ways.push_back(g::sequence(std::move(way)));
    }
    names = names.subspan(same);
  }
  ways.push_back(
    g::sequence({g::characters(g::without(plain_in_string, taken)),
                 g::repetition(g::characters(plain_in_string), 0)}));
  return g::choice(std::move(ways));
}

} // namespace

expression no_string_of(const std::set<std::u32string>& names) {
  const std::vector<std::u32string> all(names.begin(), names.end());
  return none_of(all, 0);
}

} // namespace shoal::openai
