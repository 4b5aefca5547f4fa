// runtime/core/grammar/grammar.hpp -- a pushdown automaton over bytes.
//
// Each rule is an automaton without empty moves: an edge takes a byte of a range,
// or what another rule describes. Every node can reach the end of its rule. So a
// text is a prefix of a sentence as long as any stack of nodes is left, and no
// text leads into a dead end.
//
// Characters are taken as the bytes of UTF-8: a token may end in the middle of
// one. Ranges of code points become sequences of byte ranges (R. Cox, "Regular
// Expression Matching in the Wild", 2010).
//
// Threads: any, once made.
// Errors:  compile() says what is wrong: a rule that can never end, one that
//          begins with itself, an automaton over a limit.
#pragma once

#include "runtime/core/grammar/expression.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::core::grammar {

using node_id = std::uint32_t;

/// Nodes of an automaton, of all its rules.
inline constexpr std::size_t nodes_max = 200'000;
/// Edges, likewise.
inline constexpr std::size_t edges_max = 1'000'000;
/// A repeated part of up to this many nodes is copied; a larger one becomes a
/// rule. (What is inside of one rule can be decided for a whole token at once.)
inline constexpr std::size_t copied_nodes_max = 96;
/// How deeply expressions may nest.
inline constexpr std::size_t expression_depth_max = 256;

struct byte_edge {
  std::uint8_t first = 0, last = 0; ///< the byte is from first to last
  node_id to = 0;
  friend auto operator<=>(const byte_edge&, const byte_edge&) = default;
};
struct rule_edge {
  rule_id rule = 0;
  node_id to = 0;
  friend auto operator<=>(const rule_edge&, const rule_edge&) = default;
};

struct node {
  std::vector<byte_edge> bytes;
  std::vector<rule_edge> rules;
  bool ends = false; ///< the rule may end here
};

struct grammar {
  std::vector<node> nodes;
  std::vector<node_id> starts; ///< of each rule; the first is the whole text
  std::vector<bool> nothing; ///< of each rule: whether it may be nothing at all
  /// Of each rule: less than those of all rules with which it can begin.
  std::vector<std::uint32_t> ranks;
};

/// @pre every rule that is named exists
model::result<grammar> compile(rule_set rules);

} // namespace shoal::core::grammar
