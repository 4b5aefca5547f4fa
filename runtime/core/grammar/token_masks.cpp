// runtime/core/grammar/token_masks.cpp -- walks over the vocabulary in its order:
// what tokens share is stepped through once.
#include "runtime/core/grammar/token_masks.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shoal::core::grammar {

token_list::token_list(std::vector<std::string> texts)
  : texts_(std::move(texts)) {
  for (token t = 0; t != texts_.size(); ++t)
    if (!texts_[t].empty())
      sorted_.push_back(t);
  std::ranges::stable_sort(
    sorted_, {}, [&](token t) -> const std::string& { return texts_[t]; });
  shared_.resize(sorted_.size());
  for (std::size_t k = 1; k < sorted_.size(); ++k) {
    const std::string &a = texts_[sorted_[k - 1]], &b = texts_[sorted_[k]];
    const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    shared_[k] = static_cast<std::uint32_t>(differ.first - a.begin());
  }
}

bool token_set::empty() const {
  return std::ranges::all_of(words_, [](std::uint64_t w) { return w == 0; });
}

token_masks::token_masks(grammar of, std::shared_ptr<const token_list> tokens)
  : grammar_(std::move(of)), tokens_(std::move(tokens)) {
}

const token_masks::of_node& token_masks::at(node_id top) {
  const auto known = nodes_.find(top);
  if (known != nodes_.end())
    return *known->second;
  auto made = compute(top);
  const std::size_t size =
    tokens_->size() / 8 + made->depends.size() * sizeof(std::uint32_t);
  if (bytes_ + size > node_masks_bytes_max) {
    nodes_.clear();
    bytes_ = 0;
  }
  bytes_ += size;
  return *(nodes_[top] = std::move(made));
}

std::unique_ptr<token_masks::of_node> token_masks::compute(node_id top) {
  auto out = std::make_unique<of_node>(of_node{token_set(tokens_->size()), {}});
  stacks s(grammar_);
  std::vector<position> path{s.on_unknown(top)}; // after each byte
  std::vector<bool> open{false}; // some text before has ended the rule
  const auto& sorted = tokens_->sorted();
  for (std::uint32_t k = 0; k != sorted.size(); ++k) {
    const std::string& text = tokens_->text(sorted[k]);
    path.resize(std::min<std::size_t>(path.size(), tokens_->shared()[k] + 1));
    open.resize(path.size());
    while (path.size() <= text.size() && path.back() != nowhere) {
      const bool ended = open.back() || s.is_open(path.back());
      path.push_back(
        s.step(path.back(), static_cast<std::uint8_t>(text[path.size() - 1])));
      open.push_back(ended);
    }
    if (path.size() == text.size() + 1 && path.back() != nowhere)
      out->allowed.add(sorted[k]);
    else if (open.back())
      out->depends.push_back(k);
  }
  return out;
}

constrained_text::constrained_text(std::shared_ptr<token_masks> by)
  : by_(std::move(by)), stacks_(std::make_unique<stacks>(by_->rules())),
    at_(stacks_->start()) {
}

void constrained_text::allowed(token_set& out) {
  out.clear();
  for (const stacks::top& t : stacks_->tops(at_)) {
    const token_masks::of_node& node = by_->at(t.node);
    out.add_all(node.allowed);
    add_depending(node, t.stack, out);
  }
}

void constrained_text::add_depending(const token_masks::of_node& node,
                                     std::uint32_t stack, token_set& out) {
  const token_list& tokens = by_->tokens();
  std::vector<position> path{stacks_->only(stack)};
  const std::string* before = nullptr;
  for (const std::uint32_t k : node.depends) {
    const token t = tokens.sorted()[k];
    const std::string& text = tokens.text(t);
    if (before != nullptr) {
      const auto differ =
        std::mismatch(before->begin(), before->end(), text.begin(), text.end());
      path.resize(
        std::min(path.size(), std::size_t(differ.first - before->begin()) + 1));
    }
    before = &text;
    while (path.size() <= text.size() && path.back() != nowhere)
      path.push_back(stacks_->step(
        path.back(), static_cast<std::uint8_t>(text[path.size() - 1])));
    if (path.size() == text.size() + 1 && path.back() != nowhere)
      out.add(t);
  }
}

bool constrained_text::add(token t) {
  if (t >= by_->tokens().size() || by_->tokens().text(t).empty())
    return false;
  const position next = stacks_->step(at_, by_->tokens().text(t));
  if (next == nowhere)
    return false;
  at_ = next;
  if (stacks_->bytes() > bytes_max_) {
    auto fresh = std::make_unique<stacks>(by_->rules());
    at_ = stacks_->copy_to(*fresh, at_);
    stacks_ = std::move(fresh);
    bytes_max_ = std::max(positions_bytes_max, 2 * stacks_->bytes());
  }
  return true;
}

} // namespace shoal::core::grammar
