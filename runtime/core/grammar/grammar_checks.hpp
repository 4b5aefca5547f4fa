// runtime/core/grammar/grammar_checks.hpp -- what must hold of an automaton before a
// text may follow it.
//
// Cost: linear in nodes and edges.
// Private to runtime/core/grammar.
#pragma once

#include "runtime/core/grammar/grammar.hpp"

#include <optional>
#include <vector>

namespace shoal::core::grammar {

/// Nodes from which the end of their rule can be reached.
std::vector<bool> productive(const grammar& g);

/// Rules that may be nothing at all.
std::vector<bool> may_be_nothing(const grammar& g);

struct call_order {
  /// A rule that can come to itself before a byte, if there is one.
  std::optional<rule_id> circle;
  std::vector<std::uint32_t> ranks; ///< as grammar::ranks, if there is none
};
/// @pre g.nothing is known
call_order order_of_calls(const grammar& g);

} // namespace shoal::core::grammar
