// runtime/core/grammar/node_classes.hpp -- nodes from which short texts do the same.
//
// Nodes are of one class if all texts of up to class_bytes bytes are allowed from all
// of them or from none, and end the nodes' rules at the same places. So the characters
// of a string of at most 1000, or the digits of a long number, are few classes. Source:
// partition refinement, as for minimal automata (J. Hopcroft, 1971), stopped after
// as many rounds as texts have bytes.
//
// Cost: class_bytes rounds over all edges; above class_edges_max edges each node is a
// class of its own.
// Private to runtime/core/grammar.
#pragma once

#include "runtime/core/grammar/grammar.hpp"

#include <cstdint>
#include <vector>

namespace shoal::core::grammar {

/// Of a vocabulary of 128,256 tokens 2.0 % are longer.
inline constexpr std::size_t class_bytes = 16;
inline constexpr std::size_t class_edges_max = 200'000;

/// The class of each node, named by the first node that is of it.
std::vector<node_id> classes_of(const grammar& g);

} // namespace shoal::core::grammar
