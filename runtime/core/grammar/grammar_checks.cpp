// runtime/core/grammar/grammar_checks.cpp -- each fact is passed on once, to those
// that wait for it.
#include "runtime/core/grammar/grammar_checks.hpp"

#include <algorithm>
#include <cstdint>

namespace shoal::core::grammar {

namespace {

/// An edge as its end sees it.
struct back_edge {
  node_id from = 0;
  std::optional<rule_id> rule; ///< nothing: by a byte
};

std::vector<std::vector<back_edge>>
edges_into(const grammar& g, bool with_bytes) {
  std::vector<std::vector<back_edge>> out(g.nodes.size());
  for (node_id n = 0; n != g.nodes.size(); ++n) {
    if (with_bytes)
      for (const byte_edge& e : g.nodes[n].bytes)
        out[e.to].push_back({n, std::nullopt});
    for (const rule_edge& e : g.nodes[n].rules)
      out[e.to].push_back({n, e.rule});
  }
  return out;
}

/// Nodes from which the end of their rule can be reached; with bytes, or by rules
/// alone that may be nothing.
std::vector<bool> reaches_end(const grammar& g, bool with_bytes) {
  const auto into = edges_into(g, with_bytes);
  std::vector<bool> out(g.nodes.size());
  // Nodes before a rule of which it is not known whether it can end.
  std::vector<std::vector<node_id>> waiting(g.starts.size());
  std::vector<std::vector<rule_id>> started(g.nodes.size());
  for (rule_id r = 0; r != g.starts.size(); ++r)
    started[g.starts[r]].push_back(r);
  std::vector<node_id> open;
  const auto add = [&](node_id n) {
    if (out[n])
      return;
    out[n] = true;
    open.push_back(n);
  };
  for (node_id n = 0; n != g.nodes.size(); ++n)
    if (g.nodes[n].ends)
      add(n);
  while (!open.empty()) {
    const node_id n = open.back();
    open.pop_back();
    for (const rule_id r : started[n]) {
      for (const node_id from : waiting[r])
        add(from);
      waiting[r].clear();
    }
    for (const back_edge& e : into[n])
      if (!e.rule || out[g.starts[*e.rule]])
        add(e.from);
      else
        waiting[*e.rule].push_back(e.from);
  }
  return out;
}

} // namespace

std::vector<bool> may_be_nothing(const grammar& g) {
  const std::vector<bool> ends = reaches_end(g, false);
  std::vector<bool> out;
  for (const node_id start : g.starts)
    out.push_back(ends[start]);
  return out;
}

namespace {

/// Rules with which each rule can begin.
std::vector<std::vector<rule_id>> first_rules(const grammar& g) {
  std::vector<std::vector<rule_id>> out(g.starts.size());
  std::vector<rule_id> seen_by(g.nodes.size(), ~rule_id{0});
  std::vector<node_id> open;
  for (rule_id r = 0; r != g.starts.size(); ++r) {
    const auto add = [&](node_id n) {
      if (seen_by[n] != r)
        open.push_back(n);
      seen_by[n] = r;
    };
    add(g.starts[r]);
    while (!open.empty()) {
      const node& n = g.nodes[open.back()];
      open.pop_back();
      for (const rule_edge& e : n.rules) {
        out[r].push_back(e.rule);
        if (g.nothing[e.rule])
          add(e.to);
      }
    }
    std::ranges::sort(out[r]);
    out[r].erase(std::unique(out[r].begin(), out[r].end()), out[r].end());
  }
  return out;
}

} // namespace

std::vector<bool> productive(const grammar& g) {
  return reaches_end(g, true);
}

call_order order_of_calls(const grammar& g) {
  const auto first = first_rules(g);
  call_order out{std::nullopt, std::vector<std::uint32_t>(first.size())};
  std::size_t left = first.size();
  enum class mark : std::uint8_t { unseen, on_way, done };
  std::vector<mark> marks(first.size());
  struct step {
    rule_id rule = 0;
    std::size_t next = 0;
  };
  std::vector<step> way;
  for (rule_id r = 0; r != first.size(); ++r) {
    if (marks[r] == mark::unseen)
      way.push_back({r});
    marks[r] = marks[r] == mark::unseen ? mark::on_way : marks[r];
    while (!way.empty()) {
      step& at = way.back();
      if (at.next == first[at.rule].size()) {
        marks[at.rule] = mark::done;
        out.ranks[at.rule] = static_cast<std::uint32_t>(--left);
        way.pop_back();
        continue;
      }
      const rule_id to = first[at.rule][at.next++];
      if (marks[to] == mark::on_way)
        return {to, {}};
      if (marks[to] == mark::unseen) {
        marks[to] = mark::on_way;
        way.push_back({to});
      }
    }
  }
  return out;
}

} // namespace shoal::core::grammar
