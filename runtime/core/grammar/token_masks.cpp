// runtime/core/grammar/token_masks.cpp -- walks over the vocabulary in its order:
// what tokens share is stepped through once.
#include "runtime/core/grammar/token_masks.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace shoal::core::grammar {

token_order::token_order(const std::vector<std::string>& texts,
                         std::vector<token> tokens)
  : texts_(&texts), sorted_(std::move(tokens)), shared_(sorted_.size()) {
  std::ranges::stable_sort(
    sorted_, {}, [&](token t) -> const std::string& { return texts[t]; });
  for (std::size_t k = 1; k < sorted_.size(); ++k) {
    const std::string &a = text(k - 1), &b = text(k);
    const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    shared_[k] = static_cast<std::uint32_t>(differ.first - a.begin());
  }
  std::uint32_t at = 0;
  for (std::size_t byte = 0; byte != 256; ++byte) {
    first_[byte] = at;
    while (at != sorted_.size()
           && static_cast<unsigned char>(text(at)[0]) == byte)
      ++at;
  }
  first_[256] = at;
}

std::uint32_t token_order::behind(std::uint32_t k, std::size_t length) const {
  const std::string_view whole = text(k);
  const std::uint32_t end =
    first_[std::size_t{static_cast<unsigned char>(whole[0])} + 1];
  if (length == 1)
    return end;
  constexpr std::uint32_t near = 16; // most are few
  for (std::uint32_t i = 0; i != near; ++i)
    if (++k == end || shared_[k] < length)
      return k;
  const auto found = std::partition_point(
    sorted_.begin() + k, sorted_.begin() + end,
    [&](token t) { return (*texts_)[t].starts_with(whole.substr(0, length)); });
  return static_cast<std::uint32_t>(found - sorted_.begin());
}

namespace {

std::vector<token> tokens_of(const std::vector<std::string>& texts,
                             std::size_t least, std::size_t most) {
  std::vector<token> out;
  for (token t = 0; t != texts.size(); ++t)
    if (least <= texts[t].size() && texts[t].size() <= most)
      out.push_back(t);
  return out;
}

/// Tokens whose texts differ, if there are others.
std::vector<token> different(const std::vector<std::string>& texts,
                             const std::vector<std::string>& others) {
  std::vector<token> out;
  for (token t = 0; t != others.size(); ++t)
    if (texts[t] != others[t])
      out.push_back(t);
  return out;
}

std::vector<token>
with_text(const std::vector<std::string>& texts, std::vector<token> tokens) {
  std::erase_if(tokens, [&](token t) { return texts[t].empty(); });
  return tokens;
}

} // namespace

token_list::token_list(std::vector<std::string> texts,
                       std::vector<std::string> first)
  : texts_(std::move(texts)), first_(std::move(first)),
    other_first_(different(texts_, first_)),
    few_bytes_(texts_, tokens_of(texts_, 1, class_bytes)),
    many_bytes_(texts_, tokens_of(texts_, class_bytes + 1, ~std::size_t{0})),
    by_first_(first_, with_text(first_, other_first_)) {
  if (other_first_.empty())
    first_.clear();
}

bool token_set::empty() const {
  return std::ranges::all_of(words_, [](std::uint64_t w) { return w == 0; });
}

token_masks::token_masks(grammar of, std::shared_ptr<const token_list> tokens,
                         shared_count counted)
  : grammar_(std::move(of)), tokens_(std::move(tokens)),
    classes_(classes_of(grammar_)),
    counted_(counted ? std::move(counted)
                     : std::make_shared<std::atomic<std::size_t>>(0)) {
}

void token_masks::forget() {
  known_classes_.clear();
  known_nodes_.clear();
  *counted_ -= std::exchange(bytes_, 0);
}

void token_masks::count(std::size_t bytes) {
  bytes_ += bytes;
  *counted_ += bytes;
}

void token_masks::of_node::add_to(token_set& out) const {
  out.add_all(allowed_set);
  for (const token t : allowed)
    out.add(t);
}

std::size_t token_masks::of_node::bytes() const noexcept {
  constexpr std::size_t entry_bytes = 192;
  return entry_bytes + allowed.size() * sizeof(token) + allowed_set.bytes()
         + depends.size() * sizeof(range);
}

std::optional<token_masks::found>
token_masks::at(node_id top, std::size_t& work) {
  const auto few = known_classes_.find(classes_[top]);
  const auto many = known_nodes_.find(top);
  found out{few == known_classes_.end() ? nullptr : few->second.get(),
            many == known_nodes_.end() ? nullptr : many->second.get()};
  std::unique_ptr<of_node> made_few, made_many;
  if (out.few_bytes == nullptr) {
    made_few = compute(top, tokens_->few_bytes(), work);
    if (!made_few)
      return std::nullopt;
  }
  if (out.many_bytes == nullptr) {
    made_many = compute(top, tokens_->many_bytes(), work);
    if (!made_many)
      return std::nullopt;
  }
  const std::size_t bytes =
    (made_few ? made_few->bytes() : 0) + (made_many ? made_many->bytes() : 0);
  if (bytes > 0
      && (bytes_ + bytes > node_masks_bytes_max
          || *counted_ + bytes > all_masks_bytes_max)) {
    // The other one is needed yet.
    if (!made_few)
      made_few = std::move(few->second);
    if (!made_many)
      made_many = std::move(many->second);
    forget();
  }
  if (made_few) {
    count(made_few->bytes());
    out.few_bytes = (known_classes_[classes_[top]] = std::move(made_few)).get();
  }
  if (made_many) {
    count(made_many->bytes());
    out.many_bytes = (known_nodes_[top] = std::move(made_many)).get();
  }
  return out;
}

namespace {

/// Takes work from what is left. @returns whether there was enough
bool spend(std::size_t& left, std::size_t work) {
  const bool enough = work <= left;
  left -= enough ? work : left;
  return enough;
}

} // namespace

/// @returns null if there was too little work
std::unique_ptr<token_masks::of_node>
token_masks::compute(node_id top, const token_order& order, std::size_t& work) {
  auto out = std::make_unique<of_node>();
  std::vector<token>& allowed = out->allowed;
  std::vector<range>& depends = out->depends;
  if (!walked_ || walked_->bytes() > walked_bytes_max)
    walked_.emplace(grammar_);
  stacks& s = *walked_;
  std::vector<position> path{s.on_unknown(top)}; // after each byte
  std::vector<bool> open{false}; // some text before has ended the rule
  for (std::uint32_t k = 0; k < order.size();) {
    const std::string& text = order.text(k);
    if (s.bytes() > mask_bytes_max) {
      s = stacks(grammar_);
      path = {s.on_unknown(top)};
      open = {false};
    }
    const std::size_t before = path.size() + s.work();
    while (path.size() <= text.size() && s.is_known(path.back())) {
      const bool ended = open.back() || s.is_open(path.back());
      path.push_back(
        s.step(path.back(), static_cast<std::uint8_t>(text[path.size() - 1])));
      open.push_back(ended);
    }
    if (!spend(work, path.size() + s.work() - before))
      return nullptr;
    // All tokens with a beginning that is not allowed are alike.
    const bool known = s.is_known(path.back());
    const std::uint32_t last = known ? k + 1 : order.behind(k, path.size() - 1);
    if (known)
      allowed.push_back(order[k]);
    else if (open.back() && !depends.empty() && depends.back().last == k)
      depends.back().last = last;
    else if (open.back())
      depends.push_back({k, last});
    k = last;
    if (k == order.size())
      break;
    path.resize(std::min<std::size_t>(path.size(), order.shared(k) + 1));
    open.resize(path.size());
  }
  if (allowed.size() * sizeof(token) > tokens_->size() / 8) {
    out->allowed_set = token_set(tokens_->size());
    for (const token t : allowed)
      out->allowed_set.add(t);
    allowed = {};
  }
  allowed.shrink_to_fit();
  depends.shrink_to_fit();
  return out;
}

constrained_text::constrained_text(std::shared_ptr<token_masks> by)
  : by_(std::move(by)), stacks_(std::make_unique<stacks>(by_->rules())),
    at_(stacks_->start()) {
}

void constrained_text::allowed(token_set& out) {
  out.clear();
  std::size_t work = mask_work_max;
  lost_ = lost_ || stacks_->is_cut(at_);
  const token_list& tokens = by_->tokens();
  for (const stacks::top& t : stacks_->tops(at_)) {
    if (lost_)
      break;
    const auto found = by_->at(t.node, work);
    lost_ = !found;
    if (lost_)
      break;
    if (const auto& few = found->few_bytes->depends,
        &many = found->many_bytes->depends;
        !few.empty() || !many.empty()) {
      const position here = stacks_->only(t.stack);
      lost_ = !add_depending(few, tokens.few_bytes(), here, work, out)
              || !add_depending(many, tokens.many_bytes(), here, work, out);
    }
    found->few_bytes->add_to(out);
    found->many_bytes->add_to(out);
  }
  if (!begun_ && !lost_) {
    for (const token t : tokens.other_first())
      out.remove(t);
    const token_order& first = tokens.by_first();
    const token_masks::range all{0, static_cast<std::uint32_t>(first.size())};
    lost_ = !add_depending({&all, 1}, first, at_, work, out);
  }
  if (lost_)
    out.clear();
  shrink();
}

/// @returns whether there was work enough
bool constrained_text::add_depending(
  std::span<const token_masks::range> depends, const token_order& order,
  position from, std::size_t& work, token_set& out) {
  std::vector<position> path{from};
  const std::string* before = nullptr;
  for (const auto& range : depends)
    for (std::uint32_t k = range.first; k < range.last;) {
      const std::string& text = order.text(k);
      if (before != nullptr) {
        const auto differ = std::mismatch(before->begin(), before->end(),
                                          text.begin(), text.end());
        path.resize(std::min(path.size(),
                             std::size_t(differ.first - before->begin()) + 1));
      }
      before = &text;
      const std::size_t walked = path.size() + stacks_->work();
      while (path.size() <= text.size() && stacks_->is_known(path.back()))
        path.push_back(stacks_->step(
          path.back(), static_cast<std::uint8_t>(text[path.size() - 1])));
      if (!spend(work, path.size() + stacks_->work() - walked)
          || stacks_->bytes() > mask_bytes_max)
        return false;
      if (!stacks_->is_known(path.back())) {
        k = order.behind(k, path.size() - 1);
        continue;
      }
      out.add(order[k]);
      ++k;
    }
  return true;
}

const std::string& constrained_text::text_of(token t) const {
  return begun_ ? by_->tokens().text(t) : by_->tokens().first_text(t);
}

bool constrained_text::add(token t) {
  if (t >= by_->tokens().size() || text_of(t).empty())
    return false;
  const std::string& text = text_of(t);
  position next = stacks_->step(at_, text);
  // Together the stacks may be too many where each alone is not.
  if (stacks_->is_cut(next))
    for (const stacks::top& top : stacks_->tops(at_))
      if (const position alone = stacks_->step(stacks_->only(top.stack), text);
          stacks_->is_known(alone)) {
        next = alone;
        break;
      }
  if (next == nowhere)
    return false;
  at_ = next;
  begun_ = true;
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
