// runtime/core/grammar/grammar.cpp -- from trees to an automaton: K. Thompson's
// construction (1968) for each rule, then empty moves are removed.
#include "runtime/core/grammar/grammar.hpp"

#include "runtime/core/grammar/grammar_checks.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace shoal::core::grammar {

namespace {

using model::failure;

/// A move of the first automaton: by bytes, by a rule, or empty.
struct move {
  enum class kind : std::uint8_t { empty, bytes, rule } is = kind::empty;
  std::uint8_t first = 0, last = 0;
  rule_id rule = 0;
  node_id to = 0;
};

struct over_limit {};

/// States that are looked at to remove empty moves.
constexpr std::size_t closure_steps_max = 20'000'000;

/// Bytes of a code point of `length` bytes.
std::string utf8(char32_t c, int length) {
  std::string out(std::size_t(length), '\0');
  for (int k = length - 1; k > 0; --k, c >>= 6)
    out[std::size_t(k)] = char(0x80 | (c & 0x3f));
  static constexpr unsigned lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  out[0] = length == 1 ? char(c) : char(lead[length] | c);
  return out;
}

class builder {
public:
  explicit builder(rule_set& rules) : rules_(rules) {}

  /// The automata of all rules, also of those that are added on the way.
  void build() {
    for (rule_id r = 0; r < rules_.bodies.size(); ++r) {
      const node_id begin = add_state(), end = add_state();
      starts_.push_back(begin);
      ends_.push_back(end);
      const expression body = rules_.bodies[r];
      add(body, begin, end, 0);
    }
  }

  grammar without_empty_moves() {
    grammar out;
    for (rule_id r = 0; r < starts_.size(); ++r)
      out.starts.push_back(node_of(closure(starts_[r]), out));
    for (std::size_t n = 0; n < sets_.size(); ++n) {
      // node_of() may add to both.
      const std::vector<node_id> members = *sets_[n];
      node made;
      for (const node_id s : members) {
        made.ends = made.ends || is_end(s);
        for (const move& m : moves_[s])
          if (m.is == move::kind::bytes)
            made.bytes.push_back(
              {m.first, m.last, node_of(closure(m.to), out)});
          else if (m.is == move::kind::rule)
            made.rules.push_back({m.rule, node_of(closure(m.to), out)});
      }
      const auto unique = [](auto& edges) {
        std::ranges::sort(edges);
        edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
      };
      unique(made.bytes);
      unique(made.rules);
      edges_ += made.bytes.size() + made.rules.size();
      if (edges_ > edges_max)
        throw over_limit();
      out.nodes[n] = std::move(made);
    }
    return out;
  }

private:
  node_id add_state() {
    if (moves_.size() >= 4 * nodes_max)
      throw over_limit();
    moves_.emplace_back();
    return static_cast<node_id>(moves_.size() - 1);
  }

  void add_move(node_id from, move m) {
    if (++move_count_ > 4 * edges_max)
      throw over_limit();
    moves_[from].push_back(m);
  }
  void empty(node_id from, node_id to) { add_move(from, {.to = to}); }

  void add(const expression& e, node_id from, node_id to, std::size_t depth) {
    if (depth > expression_depth_max)
      throw over_limit();
    switch (e.is) {
    case expression::kind::text: {
      node_id at = from;
      for (std::size_t i = 0; i + 1 < e.text.size(); ++i)
        at = add_byte(at, e.text[i], e.text[i]);
      if (e.text.empty())
        empty(from, to);
      else
        add_byte(at, e.text.back(), e.text.back(), to);
      return;
    }
    case expression::kind::characters:
      for (const code_range& r : e.characters)
        add_range(r.first, std::min(r.last, code_point_max), from, to);
      return;
    case expression::kind::sequence: {
      node_id at = from;
      for (std::size_t i = 0; i != e.parts.size(); ++i) {
        const bool last = i + 1 == e.parts.size();
        const node_id next = last ? to : add_state();
        add(e.parts[i], at, next, depth + 1);
        at = next;
      }
      if (e.parts.empty())
        empty(from, to);
      return;
    }
    case expression::kind::choice:
      return add_choice(e, from, to, depth);
    case expression::kind::repetition:
      return repeat(e, from, to, depth);
    case expression::kind::rule:
      return add_move(from, {.is = move::kind::rule, .rule = e.rule, .to = to});
    }
  }

  /// The text with which a part begins; none: null.
  static const std::string* begins_with(const expression& e) {
    if (e.is == expression::kind::text && !e.text.empty())
      return &e.text;
    if (e.is == expression::kind::sequence && !e.parts.empty())
      return begins_with(e.parts.front());
    return nullptr;
  }

  /// What follows that text.
  void add_behind_text(const expression& e, node_id from, node_id to,
                       std::size_t depth) {
    if (e.is == expression::kind::text)
      return empty(from, to);
    if (depth > expression_depth_max)
      throw over_limit();
    const bool alone = e.parts.size() == 1;
    node_id at = alone ? to : add_state();
    add_behind_text(e.parts.front(), from, at, depth + 1);
    for (std::size_t i = 1; i < e.parts.size(); ++i) {
      const node_id next = i + 1 == e.parts.size() ? to : add_state();
      add(e.parts[i], at, next, depth + 1);
      at = next;
    }
  }

  /// Parts that begin with texts share what these have in common, so that a long
  /// enumeration is one stack and not many.
  void
  add_choice(const expression& e, node_id from, node_id to, std::size_t depth) {
    std::map<std::pair<node_id, char>, node_id> shared;
    for (const expression& part : e.parts) {
      const std::string* const text = begins_with(part);
      if (text == nullptr || e.parts.size() == 1) {
        add(part, from, to, depth + 1);
        continue;
      }
      node_id at = from;
      for (const char c : *text) {
        const auto [next, added] = shared.try_emplace({at, c}, 0);
        if (added)
          next->second = add_byte(at, c, c);
        at = next->second;
      }
      add_behind_text(part, at, to, depth);
    }
  }

  node_id add_byte(node_id from, char first, char last,
                   std::optional<node_id> to = std::nullopt) {
    const node_id next = to ? *to : add_state();
    add_move(from, {.is = move::kind::bytes,
                    .first = static_cast<std::uint8_t>(first),
                    .last = static_cast<std::uint8_t>(last),
                    .to = next});
    return next;
  }

  void
  repeat(const expression& e, node_id from, node_id to, std::size_t depth) {
    if (e.most != unbounded && e.least > e.most)
      return; // never
    const std::uint32_t copies = e.most == unbounded ? e.least + 1 : e.most;
    const expression* part = &e.parts.front();
    expression shared;
    if (copies > 1 && size_of(*part, 0) > copied_nodes_max) {
      shared = of_rule(rules_.add("a repeated part", *part));
      part = &shared;
    }
    // States of its own: whatever else begins or ends here is not repeated.
    node_id at = add_state();
    empty(from, at);
    for (std::uint32_t k = 0; k != e.least; ++k)
      at = add_copy(*part, at, depth);
    if (e.most == unbounded) {
      empty(at, to);
      empty(add_copy(*part, at, depth), at);
      return;
    }
    for (auto k = e.least; k != e.most; ++k) {
      empty(at, to);
      at = add_copy(*part, at, depth);
    }
    empty(at, to);
  }

  node_id add_copy(const expression& part, node_id from, std::size_t depth) {
    const node_id to = add_state();
    add(part, from, to, depth + 1);
    return to;
  }

  /// About how many states it takes, up to a little above copied_nodes_max.
  static std::size_t size_of(const expression& e, std::size_t depth) {
    std::size_t sum = 1;
    if (depth > expression_depth_max)
      return copied_nodes_max + 1;
    if (e.is == expression::kind::text)
      sum += e.text.size();
    if (e.is == expression::kind::characters)
      sum += 4 * e.characters.size();
    for (const expression& part : e.parts) {
      sum += size_of(part, depth + 1);
      if (sum > copied_nodes_max)
        return sum;
    }
    if (e.is == expression::kind::repetition)
      sum *= e.most == unbounded ? std::max<std::size_t>(e.least, 1) + 1
                                 : std::max<std::size_t>(e.most, 1);
    return std::min(sum, copied_nodes_max + 1);
  }

  /// Code points [first, last], split where the length of UTF-8 changes and
  /// around surrogates.
  void add_range(char32_t first, char32_t last, node_id from, node_id to) {
    static constexpr struct {
      char32_t first, last;
      int length;
    } lengths[] = {{0, 0x7f, 1},
                   {0x80, 0x7ff, 2},
                   {0x800, 0xd7ff, 3},
                   {0xe000, 0xffff, 3},
                   {0x10000, code_point_max, 4}};
    for (const auto& part : lengths) {
      const char32_t low = std::max(first, part.first);
      const char32_t high = std::min(last, part.last);
      if (low <= high)
        add_same_length(low, high, part.length, from, to);
    }
  }

  /// Splits until each byte but the last ones is fixed or the bytes below it are
  /// whole ranges.
  void add_same_length(char32_t first, char32_t last, int length, node_id from,
                       node_id to) {
    for (int k = 1; k < length; ++k) {
      const char32_t below = (char32_t{1} << (6 * k)) - 1;
      if ((first & ~below) == (last & ~below))
        continue;
      if ((first & below) != 0) {
        add_same_length(first, first | below, length, from, to);
        add_same_length((first | below) + 1, last, length, from, to);
        return;
      }
      if ((last & below) != below) {
        add_same_length(first, (last & ~below) - 1, length, from, to);
        add_same_length(last & ~below, last, length, from, to);
        return;
      }
    }
    const std::string low = utf8(first, length), high = utf8(last, length);
    node_id at = from;
    for (std::size_t i = 0; i + 1 < low.size(); ++i)
      at = add_byte(at, low[i], high[i]);
    add_byte(at, low.back(), high.back(), to);
  }

  bool is_end(node_id s) const { return std::ranges::binary_search(ends_, s); }

  /// What `from` reaches by empty moves, without states that have no others.
  std::vector<node_id> closure(node_id from) {
    std::vector<node_id> out, open{from};
    std::vector<bool>& seen = seen_;
    seen.resize(moves_.size());
    std::vector<node_id> marked{from};
    seen[from] = true;
    while (!open.empty()) {
      const node_id s = open.back();
      open.pop_back();
      bool useful = is_end(s);
      for (const move& m : moves_[s])
        if (m.is != move::kind::empty) {
          useful = true;
        } else if (!seen[m.to]) {
          seen[m.to] = true;
          marked.push_back(m.to);
          open.push_back(m.to);
        }
      if (useful)
        out.push_back(s);
    }
    for (const node_id s : marked)
      seen[s] = false;
    // Many states, each of which leads to many: (a?){10000}.
    if ((closed_ += marked.size()) > closure_steps_max)
      throw over_limit();
    std::ranges::sort(out);
    return out;
  }

  node_id node_of(std::vector<node_id> set, grammar& out) {
    const auto [at, added] =
      nodes_.try_emplace(std::move(set), static_cast<node_id>(sets_.size()));
    if (added) {
      if (sets_.size() >= nodes_max)
        throw over_limit();
      sets_.push_back(&at->first);
      out.nodes.emplace_back();
    }
    return at->second;
  }

  rule_set& rules_;
  std::vector<std::vector<move>> moves_; ///< of each state
  std::vector<node_id> starts_, ends_;   ///< of each rule; ends ascend
  std::map<std::vector<node_id>, node_id> nodes_;
  std::vector<const std::vector<node_id>*> sets_; ///< of each node
  std::vector<bool> seen_;
  std::size_t closed_ = 0;
  std::size_t move_count_ = 0, edges_ = 0;
};

} // namespace

model::result<grammar> compile(rule_set rules) {
  if (rules.bodies.empty())
    return failure{"a grammar needs a rule"};
  grammar made;
  try {
    builder b(rules);
    b.build();
    made = b.without_empty_moves();
  } catch (const over_limit&) {
    return failure{
      "the grammar is too large: at most " + std::to_string(nodes_max)
      + " nodes, " + std::to_string(edges_max) + " edges and "
      + std::to_string(expression_depth_max) + " levels are allowed"};
  }
  const std::vector<bool> good = productive(made);
  if (!good[made.starts.front()])
    return failure{"no text can ever match rule " + rules.names.front()};
  for (node& n : made.nodes) {
    std::erase_if(n.bytes, [&](const byte_edge& e) { return !good[e.to]; });
    std::erase_if(n.rules, [&](const rule_edge& e) {
      return !good[e.to] || !good[made.starts[e.rule]];
    });
  }
  made.nothing = may_be_nothing(made);
  call_order order = order_of_calls(made);
  if (order.circle)
    return failure{"rule " + rules.names[*order.circle]
                   + " can begin with itself (left recursion): write the "
                     "repetition with * or +, or let it end with itself"};
  made.ranks = std::move(order.ranks);
  return made;
}

} // namespace shoal::core::grammar
