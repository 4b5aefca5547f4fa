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
  std::vector<std::pair<node_id, std::uint32_t>> todo{{node, below}};
  while (!todo.empty() && into.frames.size() < stacks_max
         && into.seen.size() < visits_max) {
    const auto [top, under] = todo.back();
    todo.pop_back();
    const std::uint64_t key = std::uint64_t{top} << 32 | under;
    work_ += 2 + into.frames.size() / 4;
    if (!into.seen.insert(key).second)
      continue;
    const auto& n = grammar_->nodes[top];
    if (!n.bytes.empty()) {
      const std::uint32_t f = push(top, under);
      if (std::ranges::find(into.frames, f) == into.frames.end())
        into.frames.push_back(f);
    }
    if (n.ends) {
      if (under == bottom)
        into.ends = true;
      else if (under == unknown)
        into.open = true;
      else
        todo.push_back({frames_[under].node, frames_[under].below});
    }
    for (const rule_edge& e : n.rules) {
      // A rule that is the last thing of its caller returns to the caller's.
      todo.push_back({grammar_->starts[e.rule],
                      only_ends_[e.to] ? under : push(e.to, under)});
    }
  }
}

position stacks::keep(found f) {
  if (f.frames.empty() && !f.ends && !f.open)
    return nowhere;
  work_ += 4 * f.frames.size();
  std::ranges::sort(f.frames);
  std::string key(reinterpret_cast<const char*>(f.frames.data()),
                  f.frames.size() * sizeof(std::uint32_t));
  key += char(f.ends + 2 * f.open);
  const auto [at, added] = position_ids_.try_emplace(
    std::move(key), static_cast<position>(positions_.size()));
  if (added) {
    bytes_ += 160 + 8 * f.frames.size();
    place made;
    made.frames = std::move(f.frames);
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
  f.frames.push_back(push(top, unknown));
  return keep(std::move(f));
}

position stacks::only(std::uint32_t stack) {
  found f;
  f.frames.push_back(stack);
  return keep(std::move(f));
}

std::vector<stacks::top> stacks::tops(position at) const {
  std::vector<top> out;
  for (const std::uint32_t f : positions_[at].frames)
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
  f.ends = positions_[at].ends;
  f.open = positions_[at].open;
  return other.keep(std::move(f));
}

} // namespace shoal::core::grammar
