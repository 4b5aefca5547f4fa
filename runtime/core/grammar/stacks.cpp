// runtime/core/grammar/stacks.cpp -- steps of a pushdown automaton with all of
// its stacks at once: first rules end, then rules are called, callers first, so that
// all to which a rule returns is known when it calls others.
#include "runtime/core/grammar/stacks.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace shoal::core::grammar {

namespace {

/// Whether nothing but the end of the rule follows.
bool only_returns(const node& n) {
  return n.ends && n.bytes.empty() && n.rules.empty();
}

std::string key_of(const std::vector<std::uint32_t>& ids) {
  return {reinterpret_cast<const char*>(ids.data()),
          ids.size() * sizeof(std::uint32_t)};
}

} // namespace

stacks::stacks(const grammar& of)
  : grammar_(&of), frames_(2), positions_(1), reached_(of.nodes.size()),
    inside_(of.nodes.size()), takers_(of.nodes.size()),
    called_(of.starts.size()) {
}

stacks::stack_set stacks::push(node_id node, stack_set below) {
  const auto [at, added] = frame_ids_.try_emplace(
    std::uint64_t{node} << 32 | below, static_cast<stack_set>(frames_.size()));
  if (added) {
    frames_.push_back({node, below});
    bytes_ += 64;
  }
  return at->second;
}

stacks::stack_set stacks::set_of(const std::vector<stack_set>& frames) {
  if (frames.size() == 1)
    return frames.front();
  work_ += frames.size();
  const auto [at, added] = list_ids_.try_emplace(
    key_of(frames), static_cast<stack_set>(frames_.size()));
  if (added) {
    frames_.push_back({several, static_cast<std::uint32_t>(lists_.size())});
    lists_.push_back(frames);
    bytes_ += 160 + 2 * sizeof(stack_set) * frames.size();
  }
  return at->second;
}

template <class F>
void stacks::each_frame(stack_set of, F f) const {
  if (frames_[of].node != several)
    return f(of);
  for (const stack_set one : lists_[frames_[of].below])
    f(one);
}

void stacks::begin(bool cut) {
  for (piles* p : {&reached_, &inside_, &takers_, &called_})
    p->clear();
  is_top_.clear();
  todo_.clear();
  order_.clear();
  visits_ = 0;
  found_ = {};
  found_.cut = cut;
}

/// @returns whether the limit allows it
bool stacks::visit() {
  work_ += 2;
  if (++visits_ > visits_max)
    found_.cut = true;
  return visits_ <= visits_max;
}

/// @param frame one that is below the node, or bottom or unknown
void stacks::look_at(node_id node, stack_set frame) {
  if (visit() && reached_.add(node, frame)) {
    todo_.emplace_back(node, frame);
    is_top_.resize(reached_.size());
  }
}

/// A node that is a top.
void stacks::add(node_id node, stack_set below) {
  each_frame(below, [&](stack_set frame) { look_at(node, frame); });
  if (reached_.has(node))
    is_top_[reached_.place_of(node)] = true;
}

/// Follows ends of rules, and passes over rules that are nothing.
void stacks::end_rules() {
  while (!todo_.empty()) {
    const auto [top, under] = todo_.back();
    todo_.pop_back();
    const node& n = grammar_->nodes[top];
    if (n.ends && under == bottom)
      found_.ends = true;
    else if (n.ends && under == unknown)
      found_.open = true;
    else if (n.ends)
      add(frames_[under].node, frames_[under].below);
    for (const rule_edge& e : n.rules)
      if (grammar_->nothing[e.rule])
        look_at(e.to, under);
  }
}

void stacks::take_bytes(node_id node, stack_set below) {
  if (grammar_->nodes[node].bytes.empty())
    return;
  if (!takers_.has(node) && takers_.size() == stacks_max) {
    found_.cut = true;
    return;
  }
  each_frame(below, [&](stack_set frame) {
    if (visit())
      takers_.add(node, frame);
  });
}

void stacks::call(const rule_edge& e, stack_set from) {
  const std::size_t before = called_.size();
  // A rule that is the last thing of its caller returns to the caller's.
  if (!only_returns(grammar_->nodes[e.to])) {
    if (visit())
      called_.add(e.rule, push(e.to, from));
  } else {
    each_frame(from, [&](stack_set frame) {
      if (visit())
        called_.add(e.rule, frame);
    });
  }
  if (called_.size() == before)
    return;
  order_.emplace_back(grammar_->ranks[e.rule], e.rule);
  std::ranges::push_heap(order_, std::greater());
}

void stacks::call_rules() {
  for (std::size_t k = 0; k != reached_.size(); ++k) {
    const node_id at = reached_.key(k);
    const node& n = grammar_->nodes[at];
    if (n.bytes.empty() && n.rules.empty())
      continue;
    const stack_set below = set_of(reached_[k]);
    if (is_top_[k])
      found_.tops.push_back(push(at, below));
    take_bytes(at, below);
    for (const rule_edge& e : n.rules)
      call(e, below);
  }
  while (!order_.empty() && visits_ <= visits_max) {
    std::ranges::pop_heap(order_, std::greater());
    const rule_id rule = order_.back().second;
    order_.pop_back();
    const stack_set below = set_of(called_[called_.place_of(rule)]);
    std::size_t done = inside_.size();
    inside_.add(grammar_->starts[rule], below);
    for (; done != inside_.size(); ++done) {
      const node_id at = inside_.key(done);
      visit();
      take_bytes(at, below);
      for (const rule_edge& e : grammar_->nodes[at].rules) {
        call(e, below);
        if (grammar_->nothing[e.rule])
          inside_.add(e.to, below);
      }
    }
  }
}

position stacks::keep() {
  end_rules();
  call_rules();
  for (std::size_t k = 0; k != takers_.size(); ++k)
    found_.frames.push_back(push(takers_.key(k), set_of(takers_[k])));
  work_ += 4 * found_.frames.size();
  std::ranges::sort(found_.frames);
  return keep(std::move(found_));
}

position stacks::keep(place made) {
  if (made.frames.empty() && !made.ends && !made.open && !made.cut)
    return nowhere;
  std::string key = key_of(made.frames);
  key += char(made.ends + 2 * made.open + 4 * made.cut);
  const auto [at, added] = position_ids_.try_emplace(
    std::move(key), static_cast<position>(positions_.size()));
  if (added) {
    bytes_ += 160 + 8 * made.frames.size() + 4 * made.tops.size();
    positions_.push_back(std::move(made));
  }
  return at->second;
}

position stacks::start() {
  begin(false);
  add(grammar_->starts.front(), bottom);
  return keep();
}

position stacks::on_unknown(node_id top) {
  begin(false);
  add(top, unknown);
  end_rules();
  // Where the rule ends here, what follows is on top of another stack.
  found_.open = false;
  return keep();
}

position stacks::only(std::uint32_t stack) {
  begin(false);
  add(frames_[stack].node, frames_[stack].below);
  return keep();
}

std::vector<stacks::top> stacks::tops(position at) const {
  std::vector<top> out;
  for (const stack_set f : positions_[at].tops)
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
  begin(positions_[from].cut);
  for (const stack_set at : positions_[from].frames)
    for (const byte_edge& e : grammar_->nodes[frames_[at].node].bytes)
      if (e.first <= byte && byte <= e.last)
        add(e.to, frames_[at].below);
  const position to = keep();
  (*positions_[from].next)[byte] = to;
  return to;
}

position stacks::step(position from, std::string_view text) {
  for (const char c : text)
    from = step(from, static_cast<std::uint8_t>(c));
  return from;
}

position stacks::copy_to(stacks& other, position at) const {
  // Stacks are shared, also those of different tops: each is copied once, after what
  // is below it, which has lesser ids.
  std::map<stack_set, stack_set> copies;
  std::vector<stack_set> open;
  const auto need = [&](stack_set s) {
    if (s != bottom && s != unknown && copies.emplace(s, bottom).second)
      open.push_back(s);
  };
  for (const auto* list : {&positions_[at].frames, &positions_[at].tops})
    std::ranges::for_each(*list, need);
  while (!open.empty()) {
    const frame f = frames_[open.back()];
    open.pop_back();
    if (f.node == several)
      std::ranges::for_each(lists_[f.below], need);
    else
      need(f.below);
  }
  const auto copied = [&](stack_set s) {
    return s == bottom || s == unknown ? s : copies.at(s);
  };
  const auto all_copied = [&](const std::vector<stack_set>& of) {
    std::vector<stack_set> out(of.size());
    std::ranges::transform(of, out.begin(), copied);
    std::ranges::sort(out);
    return out;
  };
  for (auto& [from, to] : copies) {
    const frame f = frames_[from];
    to = f.node == several ? other.set_of(all_copied(lists_[f.below]))
                           : other.push(f.node, copied(f.below));
  }
  place made;
  made.frames = all_copied(positions_[at].frames);
  made.tops = all_copied(positions_[at].tops);
  made.ends = positions_[at].ends;
  made.open = positions_[at].open;
  made.cut = positions_[at].cut;
  return other.keep(std::move(made));
}

} // namespace shoal::core::grammar
