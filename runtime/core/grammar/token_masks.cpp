// runtime/core/grammar/token_masks.cpp -- walks over the vocabulary in its order:
// what tokens share is stepped through once.
#include "runtime/core/grammar/token_masks.hpp"

#include <algorithm>
#include <string_view>
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
  std::uint32_t at = 0;
  for (std::size_t byte = 0; byte != 256; ++byte) {
    first_[byte] = at;
    while (at != sorted_.size()
           && static_cast<unsigned char>(texts_[sorted_[at]][0]) == byte)
      ++at;
  }
  first_[256] = at;
}

std::uint32_t token_list::behind(std::uint32_t k, std::size_t length) const {
  const std::string& text = texts_[sorted_[k]];
  const std::uint32_t end =
    first_[std::size_t{static_cast<unsigned char>(text[0])} + 1];
  if (length == 1)
    return end;
  constexpr std::uint32_t near = 16; // most are few
  for (std::uint32_t i = 0; i != near; ++i)
    if (++k == end || shared_[k] < length)
      return k;
  const std::string_view prefix = std::string_view(text).substr(0, length);
  const auto found = std::partition_point(
    sorted_.begin() + k, sorted_.begin() + end,
    [&](token t) { return std::string_view(texts_[t]).starts_with(prefix); });
  return static_cast<std::uint32_t>(found - sorted_.begin());
}

bool token_set::empty() const {
  return std::ranges::all_of(words_, [](std::uint64_t w) { return w == 0; });
}

token_masks::token_masks(grammar of, std::shared_ptr<const token_list> tokens,
                         shared_count counted)
  : grammar_(std::move(of)), tokens_(std::move(tokens)),
    counted_(counted ? std::move(counted)
                     : std::make_shared<std::atomic<std::size_t>>(0)) {
}

void token_masks::forget() {
  nodes_.clear();
  *counted_ -= std::exchange(bytes_, 0);
}

const token_masks::of_node* token_masks::at(node_id top, std::size_t& work) {
  const auto known = nodes_.find(top);
  if (known != nodes_.end())
    return known->second.get();
  auto made = compute(top, work);
  if (!made)
    return nullptr;
  const std::size_t size =
    tokens_->size() / 8 + made->depends.size() * sizeof(of_node::range);
  if (bytes_ + size > node_masks_bytes_max
      || *counted_ + size > all_masks_bytes_max)
    forget();
  bytes_ += size;
  *counted_ += size;
  return (nodes_[top] = std::move(made)).get();
}

namespace {

/// Takes work from what is left. @returns whether there was enough
bool spend(std::size_t& left, std::size_t work) {
  const bool enough = work <= left;
  left -= enough ? work : left;
  return enough;
}

} // namespace

std::unique_ptr<token_masks::of_node>
token_masks::compute(node_id top, std::size_t& work) {
  auto out = std::make_unique<of_node>(of_node{token_set(tokens_->size()), {}});
  stacks s(grammar_);
  std::vector<position> path{s.on_unknown(top)}; // after each byte
  std::vector<bool> open{false}; // some text before has ended the rule
  const auto& sorted = tokens_->sorted();
  for (std::uint32_t k = 0; k < sorted.size();) {
    const std::string& text = tokens_->text(sorted[k]);
    if (s.bytes() > mask_bytes_max) {
      s = stacks(grammar_);
      path = {s.on_unknown(top)};
      open = {false};
    }
    const std::size_t before = path.size() + s.work();
    while (path.size() <= text.size() && path.back() != nowhere) {
      const bool ended = open.back() || s.is_open(path.back());
      path.push_back(
        s.step(path.back(), static_cast<std::uint8_t>(text[path.size() - 1])));
      open.push_back(ended);
    }
    if (!spend(work, path.size() + s.work() - before))
      return nullptr;
    // All tokens with a beginning that is not allowed are alike.
    const std::uint32_t last =
      path.back() == nowhere ? tokens_->behind(k, path.size() - 1) : k + 1;
    if (path.back() != nowhere)
      out->allowed.add(sorted[k]);
    else if (open.back() && !out->depends.empty()
             && out->depends.back().last == k)
      out->depends.back().last = last;
    else if (open.back())
      out->depends.push_back({k, last});
    k = last;
    if (k == sorted.size())
      break;
    path.resize(std::min<std::size_t>(path.size(), tokens_->shared()[k] + 1));
    open.resize(path.size());
  }
  return out;
}

constrained_text::constrained_text(std::shared_ptr<token_masks> by)
  : by_(std::move(by)), stacks_(std::make_unique<stacks>(by_->rules())),
    at_(stacks_->start()) {
}

void constrained_text::allowed(token_set& out) {
  out.clear();
  std::size_t work = mask_work_max;
  for (const stacks::top& t : stacks_->tops(at_)) {
    const token_masks::of_node* const node = by_->at(t.node, work);
    lost_ = lost_ || !node || !add_depending(*node, t.stack, work, out);
    if (lost_)
      break;
    out.add_all(node->allowed);
  }
  if (lost_)
    out.clear();
  shrink();
}

/// @returns whether there was work enough
bool constrained_text::add_depending(const token_masks::of_node& node,
                                     std::uint32_t stack, std::size_t& work,
                                     token_set& out) {
  const token_list& tokens = by_->tokens();
  std::vector<position> path{stacks_->only(stack)};
  const std::string* before = nullptr;
  for (const auto& range : node.depends)
    for (std::uint32_t k = range.first; k < range.last;) {
      const token t = tokens.sorted()[k];
      const std::string& text = tokens.text(t);
      if (before != nullptr) {
        const auto differ = std::mismatch(before->begin(), before->end(),
                                          text.begin(), text.end());
        path.resize(std::min(path.size(),
                             std::size_t(differ.first - before->begin()) + 1));
      }
      before = &text;
      const std::size_t walked = path.size() + stacks_->work();
      while (path.size() <= text.size() && path.back() != nowhere)
        path.push_back(stacks_->step(
          path.back(), static_cast<std::uint8_t>(text[path.size() - 1])));
      if (!spend(work, path.size() + stacks_->work() - walked)
          || stacks_->bytes() > mask_bytes_max)
        return false;
      if (path.back() == nowhere) {
        k = tokens.behind(k, path.size() - 1);
        continue;
      }
      out.add(t);
      ++k;
    }
  return true;
}

bool constrained_text::add(token t) {
  if (t >= by_->tokens().size() || by_->tokens().text(t).empty())
    return false;
  const position next = stacks_->step(at_, by_->tokens().text(t));
  if (next == nowhere)
    return false;
  at_ = next;
  shrink();
  return true;
}

void constrained_text::shrink() {
  if (stacks_->bytes() <= bytes_max_)
    return;
  auto fresh = std::make_unique<stacks>(by_->rules());
  at_ = stacks_->copy_to(*fresh, at_);
  stacks_ = std::move(fresh);
  bytes_max_ = std::max(positions_bytes_max, 2 * stacks_->bytes());
}

} // namespace shoal::core::grammar
