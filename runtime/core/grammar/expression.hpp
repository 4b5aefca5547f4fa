// runtime/core/grammar/expression.hpp -- what a text may be, as trees.
//
// A rule set is a context-free grammar in the usual notation: rules whose bodies
// are texts, characters, sequences, choices, repetitions and other rules. Parsers
// of GBNF, regular expressions and JSON schemas make them; compile() of
// grammar.hpp makes an automaton of one.
//
// Threads: values. Errors: none here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::core::grammar {

/// Unicode code points from `first` to `last`. Surrogates are never produced.
struct code_range {
  char32_t first = 0, last = 0;
  friend bool operator==(const code_range&, const code_range&) = default;
};

inline constexpr char32_t code_point_max = 0x10ffff;
inline constexpr std::uint32_t unbounded = ~std::uint32_t{0};

using rule_id = std::uint32_t;

struct expression {
  enum class kind : std::uint8_t {
    text,       ///< these bytes
    characters, ///< one character of these ranges
    sequence,   ///< the parts, one after the other
    choice,     ///< one of the parts; of none: nothing is possible
    repetition, ///< the only part, `least` to `most` times
    rule,       ///< what another rule describes
  };
  kind is = kind::text;
  std::string text;
  std::vector<code_range> characters;
  std::vector<expression> parts;
  std::uint32_t least = 0, most = 0;
  rule_id rule = 0;
};

expression literal(std::string text);
expression characters(std::vector<code_range> of);
expression sequence(std::vector<expression> parts);
expression choice(std::vector<expression> parts);
expression repetition(expression part, std::uint32_t least,
                      std::uint32_t most = unbounded);
expression optional(expression part);
expression of_rule(rule_id rule);

/// All code points that are in none of the ranges, ascending.
std::vector<code_range> all_but(std::vector<code_range> ranges);
/// The ranges without those of `removed`.
std::vector<code_range>
without(std::vector<code_range> ranges, std::vector<code_range> removed);

/// A grammar; the first rule is the whole text.
struct rule_set {
  std::vector<std::string> names; ///< for messages
  std::vector<expression> bodies; ///< of each name

  /// Adds a rule whose body is set later.
  rule_id add(std::string name);
  rule_id add(std::string name, expression body);
};

} // namespace shoal::core::grammar
