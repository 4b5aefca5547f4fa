// runtime/core/grammar/node_classes.cpp -- rounds: each tells nodes apart whose edges
// lead to nodes that the round before has told apart.
#include "runtime/core/grammar/node_classes.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace shoal::core::grammar {

namespace {

/// What a round knows of a node: numbers, the same for nodes that are alike.
using signature = std::vector<std::uint32_t>;

} // namespace

std::vector<node_id> classes_of(const grammar& g) {
  std::vector<node_id> classes(g.nodes.size());
  std::size_t edges = 0;
  for (const node& n : g.nodes)
    edges += n.bytes.size() + n.rules.size();
  if (edges > class_edges_max) {
    std::iota(classes.begin(), classes.end(), node_id{0});
    return classes;
  }
  std::size_t count = 1;
  for (std::size_t round = 0; round != class_bytes; ++round) {
    std::map<signature, node_id> known;
    std::vector<node_id> next(classes.size());
    for (node_id n = 0; n != g.nodes.size(); ++n) {
      const node& of = g.nodes[n];
      signature s{of.ends};
      for (const byte_edge& e : of.bytes)
        s.insert(s.end(),
                 {std::uint32_t{e.first} << 8 | e.last, classes[e.to]});
      s.push_back(~std::uint32_t{0});
      // Behind a rule that may be nothing as many bytes follow as here.
      for (const rule_edge& e : of.rules)
        s.insert(s.end(), {e.rule, g.nothing[e.rule] ? e.to : classes[e.to]});
      next[n] = known.try_emplace(std::move(s), n).first->second;
    }
    classes = std::move(next);
    if (known.size() == count)
      break; // nothing changes any more
    count = known.size();
  }
  return classes;
}

} // namespace shoal::core::grammar
