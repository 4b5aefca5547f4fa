// runtime/core/grammar/stacks.cpp -- steps of a pushdown automaton with all of
// its stacks at once.
#include "runtime/core/grammar/stacks.hpp"

#include <algorithm>
#include <utility>

namespace shoal::core::grammar {

stacks::stacks(const grammar& of)
  : grammar_(&of), only_ends_(of.nodes.size()), frames_(2), positions_(1) {
  for (std::size_t n = 0; n != of.nodes.size(); ++n)
    only_ends_[n] = of.nodes[n].ends && of.nodes[n].bytes.empty()
                    && of.nodes[n].rules.empty();
}

std::uint32_t stacks::push(node_id node, std::uint32_t below) {
  const auto [at, added] =
    frame_ids_.try_emplace(std::uint64_t{node} << 32 | below,
                           static_cast<std::uint32_t>(frames_.size()));
  if (added) {
    frames_.push_back({node, below});
    bytes_ += 64;
  }
  return at->second;
}

/// Adds all stacks that take a byte next, of the one with `node` on top.
void stacks::close(node_id node, std::uint32_t below, found& into) {
  struct item {
    node_id top;
    std::uint32_t under;
    bool called; ///< by a rule that is on top otherwise
  };
  std::vector<item> todo{{node, below, false}};
  while (!todo.empty()) {
    const auto [top, under, called] = todo.back();
    todo.pop_back();
    const auto& n = grammar_->nodes[top];
    const std::uint64_t key = std::uint64_t{top} << 32 | under;
    work_ += 2;
    if (!called && !(n.bytes.empty() && n.rules.empty())
        && into.seen_top.insert(key).second)
      into.tops.push_back(push(top, under));
    if (into.seen.contains(key))
      continue;
    if (into.frames.size() >= stacks_max || into.seen.size() >= visits_max) {
      into.cut = true;
      return;
    }
    into.seen.insert(key);
    if (!n.bytes.empty())
      into.frames.push_back(push(top, under));
    if (n.ends) {
      if (under == bottom)
        into.ends = true;
      else if (under == unknown)
        into.open = true;
      else
        todo.push_back({frames_[under].node, frames_[under].below, false});
    }
    for (const rule_edge& e : n.rules) {
      // A rule that is the last thing of its caller returns to the caller's.
      todo.push_back({grammar_->starts[e.rule],
                      only_ends_[e.to] ? under : push(e.to, under), true});
    }
  }
}

position stacks::keep(found f) {
  if (f.frames.empty() && !f.ends && !f.open && !f.cut)
    return nowhere;
  work_ += 4 * f.frames.size();
  std::ranges::sort(f.frames);
  std::string key(reinterpret_cast<const char*>(f.frames.data()),
                  f.frames.size() * sizeof(std::uint32_t));
  key += char(f.ends + 2 * f.open + 4 * f.cut);
  const auto [at, added] = position_ids_.try_emplace(
    std::move(key), static_cast<position>(positions_.size()));
  if (added) {
    bytes_ += 160 + 8 * f.frames.size() + 4 * f.tops.size();
    place made;
    made.frames = std::move(f.frames);
    made.tops = std::move(f.tops);
    made.cut = f.cut;
    made.ends = f.ends;
    made.open = f.open;
    positions_.push_back(std::move(made));
  }
  return at->second;
}

position stacks::start() {
  found f;
  close(grammar_->starts.front(), bottom, f);
  return keep(std::move(f));
}

position stacks::on_unknown(node_id top) {
  found f;
  close(top, unknown, f);
  // Where the rule ends here, what follows is on top of another stack.
  f.open = false;
  return keep(std::move(f));
}

position stacks::only(std::uint32_t stack) {
  found f;
  close(frames_[stack].node, frames_[stack].below, f);
  return keep(std::move(f));
}

std::vector<stacks::top> stacks::tops(position at) const {
  std::vector<top> out;
  for (const std::uint32_t f : positions_[at].tops)
    out.push_back({frames_[f].node, f});
  return out;
}

position stacks::step(position from, std::uint8_t byte) {
  if (from == nowhere)
    return nowhere;
  constexpr position not_known = ~position{0};
  if (!positions_[from].next) {
    positions_[from].next = std::make_unique<std::array<position, 256>>();
    positions_[from].next->fill(not_known);
    bytes_ += sizeof *positions_[from].next;
  }
  if (const position known = (*positions_[from].next)[byte]; known != not_known)
    return known;
  found f;
  f.cut = positions_[from].cut;
  const std::vector<std::uint32_t> frames = positions_[from].frames;
  for (const std::uint32_t at : frames) {
    const frame top = frames_[at];
    for (const byte_edge& e : grammar_->nodes[top.node].bytes)
      if (e.first <= byte && byte <= e.last)
        close(e.to, top.below, f);
  }
  const position to = keep(std::move(f));
  (*positions_[from].next)[byte] = to;
  return to;
}

position stacks::step(position from, std::string_view text) {
  for (const char c : text)
    from = step(from, static_cast<std::uint8_t>(c));
  return from;
}

std::uint32_t stacks::copy_frame(stacks& other, std::uint32_t f) const {
  std::vector<node_id> nodes;
  for (; f != bottom && f != unknown; f = frames_[f].below)
    nodes.push_back(frames_[f].node);
  for (; !nodes.empty(); nodes.pop_back())
    f = other.push(nodes.back(), f);
  return f;
}

position stacks::copy_to(stacks& other, position at) const {
  found f;
  for (const std::uint32_t from : positions_[at].frames)
    f.frames.push_back(copy_frame(other, from));
  for (const std::uint32_t from : positions_[at].tops)
    f.tops.push_back(copy_frame(other, from));
  f.ends = positions_[at].ends;
  f.open = positions_[at].open;
  f.cut = positions_[at].cut;
  return other.keep(std::move(f));
}

} // namespace shoal::core::grammar
