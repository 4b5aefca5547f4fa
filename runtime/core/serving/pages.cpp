// runtime/core/serving/pages.cpp -- the tree of shared pages.
#include "runtime/core/serving/pages.hpp"

#include "runtime/core/assert.hpp"

#include <algorithm>

namespace shoal::core {

page_pool::page_pool(std::uint32_t pages) : total_(pages) {
  for (page_id p = pages; p > 0; --p)
    free_.push_back(p - 1);
}

/// Node by node: a chain of pages may be deeper than a stack.
page_pool::~page_pool() {
  std::vector<std::unique_ptr<node>> left;
  left.push_back(std::move(root_));
  while (!left.empty()) {
    const std::unique_ptr<node> n = std::move(left.back());
    left.pop_back();
    for (auto& [text, child] : n->next)
      left.push_back(std::move(child));
  }
}

page_pool::page_text
page_pool::text_at(std::span<const token_id> tokens, std::size_t page) {
  page_text out;
  std::ranges::copy(tokens.subspan(page * page_tokens, page_tokens),
                    out.begin());
  return out;
}

page_pool::node* page_pool::find(node& before, const page_text& text) const {
  const auto at = before.next.find(text);
  return at == before.next.end() ? nullptr : at->second.get();
}

void page_pool::use(node& n) {
  if (n.users++ > 0)
    return;
  --kept_;
  idle_.erase({n.used, &n});
}

/// @pre the pages after it in the same table have been left
void page_pool::leave(node& n) {
  if (--n.users > 0)
    return;
  ++kept_;
  n.used = ++clock_;
  if (n.next.empty())
    idle_.insert({n.used, &n});
}

std::size_t page_pool::match(std::span<const token_id> tokens) const {
  if (tokens.empty())
    return 0;
  const std::size_t most = (tokens.size() - 1) / page_tokens;
  node* at = root_.get();
  for (std::size_t p = 0; p < most; ++p) {
    at = find(*at, text_at(tokens, p));
    if (!at)
      return p * page_tokens;
  }
  return most * page_tokens;
}

page_pool::table page_pool::begin(std::span<const token_id> tokens) {
  table out;
  const std::size_t pages = match(tokens) / page_tokens;
  node* at = root_.get();
  for (std::size_t p = 0; p < pages; ++p) {
    at = find(*at, text_at(tokens, p));
    use(*at);
    out.shared_.push_back(at);
    out.pages_.push_back(at->page);
  }
  return out;
}

bool page_pool::grow(table& t, std::size_t tokens) {
  const std::size_t want = pages_for(tokens);
  if (want > t.pages_.size() + available())
    return false;
  while (t.pages_.size() < want)
    t.pages_.push_back(take());
  return true;
}

page_id page_pool::take() {
  if (free_.empty())
    drop_oldest();
  const page_id out = free_.back();
  free_.pop_back();
  return out;
}

void page_pool::drop_oldest() {
  SHOAL_ASSERT(!idle_.empty());
  node* const oldest = idle_.begin()->second;
  idle_.erase(idle_.begin());
  free_.push_back(oldest->page);
  --kept_;
  node* const before = oldest->before;
  before->next.erase(page_text(oldest->text));
  if (before != root_.get() && before->users == 0 && before->next.empty())
    idle_.insert({before->used, before});
}

void page_pool::computed(table& t, std::span<const token_id> tokens) {
  const std::size_t full = tokens.size() / page_tokens;
  SHOAL_ASSERT(full <= t.pages_.size());
  while (t.shared_.size() < full) {
    const std::size_t p = t.shared_.size();
    node& before = p == 0 ? *root_ : *t.shared_.back();
    const page_text text = text_at(tokens, p);
    if (node* const same = find(before, text)) {
      use(*same);
      free_.push_back(t.pages_[p]);
      t.pages_[p] = same->page;
      t.shared_.push_back(same);
      continue;
    }
    auto fresh = std::make_unique<node>();
    fresh->before = &before;
    fresh->text = text;
    fresh->page = t.pages_[p];
    fresh->users = 1;
    t.shared_.push_back(fresh.get());
    before.next.emplace(text, std::move(fresh));
  }
}

void page_pool::end(table& t) {
  for (std::size_t p = t.shared_.size(); p < t.pages_.size(); ++p)
    free_.push_back(t.pages_[p]);
  for (auto n = t.shared_.rbegin(); n != t.shared_.rend(); ++n)
    leave(**n);
  t = {};
}

} // namespace shoal::core
