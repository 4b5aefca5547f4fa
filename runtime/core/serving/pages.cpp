// runtime/core/serving/pages.cpp -- the tree of shared pages.
#include "runtime/core/serving/pages.hpp"

#include "runtime/core/assert.hpp"

#include <algorithm>

namespace shoal::core {

page_pool::page_pool(std::uint32_t pages, window_pages windows)
  : total_(pages), windows_(windows) {
  SHOAL_ASSERT(windows.pages == 0 || windows.window > 0);
  for (page_id p = pages; p > 0; --p)
    free_.push_back(p - 1);
  for (page_id p = windows.pages; p > 0; --p)
    free_windows_.push_back(p - 1);
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
  std::size_t out = 0;
  std::size_t gap = 0; // behind the last page whose window page was dropped
  for (std::size_t p = 0; p < most; ++p) {
    at = find(*at, text_at(tokens, p));
    if (!at)
      break;
    if (windows_.pages != 0 && !at->has_window)
      gap = p + 1;
    if (first_seen((p + 1) * page_tokens) >= gap)
      out = p + 1;
  }
  return out * page_tokens;
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
  if (windows_.pages == 0)
    return out;
  out.window_first_ = first_seen(pages * page_tokens);
  out.windows_.resize(pages);
  for (std::size_t p = out.window_first_; p < pages; ++p) {
    use_window(*out.shared_[p]);
    out.windows_[p] = out.shared_[p]->window;
  }
  return out;
}

bool page_pool::grow(table& t, std::size_t tokens, std::size_t rows) {
  const std::size_t want = pages_for(tokens);
  if (want > t.pages_.size() + available())
    return false;
  if (windows_.pages != 0) {
    const std::size_t has = t.windows_.size() - t.window_first_;
    const std::size_t need =
      std::max(has, std::min(want, window_ring(windows_.window, rows)));
    if (promised_ - t.promised_ + need > windows_.pages)
      return false;
    promised_ += need - t.promised_;
    t.promised_ = need;
  }
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
  if (oldest->has_window)
    drop_window(*oldest);
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
      share_window(t, p, *same);
      continue;
    }
    auto fresh = std::make_unique<node>();
    fresh->before = &before;
    fresh->text = text;
    fresh->page = t.pages_[p];
    fresh->users = 1;
    t.shared_.push_back(fresh.get());
    share_window(t, p, *fresh);
    before.next.emplace(text, std::move(fresh));
  }
}

void page_pool::end(table& t) {
  for (std::size_t p = t.windows_.size(); p > t.window_first_; --p)
    leave_window(t, p - 1);
  promised_ -= t.promised_;
  for (std::size_t p = t.shared_.size(); p < t.pages_.size(); ++p)
    free_.push_back(t.pages_[p]);
  for (auto n = t.shared_.rbegin(); n != t.shared_.rend(); ++n)
    leave(**n);
  t = {};
}

// Window pages. ---------------------------------------------------------------

/// The first page that a row at this position sees in layers with a window.
std::size_t page_pool::first_seen(std::size_t row) const {
  return row < windows_.window ? 0 : (row + 1 - windows_.window) / page_tokens;
}

void page_pool::slide(table& t, std::size_t first, std::size_t end) {
  if (windows_.pages == 0)
    return;
  const std::size_t seen = first_seen(first);
  SHOAL_ASSERT(seen <= t.windows_.size());
  for (; t.window_first_ < seen; ++t.window_first_)
    leave_window(t, t.window_first_);
  const std::size_t want = pages_for(end);
  SHOAL_ASSERT(want <= t.window_first_ + t.promised_);
  while (t.windows_.size() < want)
    t.windows_.push_back(take_window());
}

void page_pool::use_window(node& n) {
  SHOAL_ASSERT(n.has_window);
  if (n.window_users++ == 0)
    idle_windows_.erase({n.window_used, &n});
}

/// @pre the table has that window page
void page_pool::leave_window(table& t, std::size_t page) {
  if (page >= t.shared_.size()) {
    free_windows_.push_back(t.windows_[page]);
    return;
  }
  node& n = *t.shared_[page];
  SHOAL_ASSERT(n.has_window && n.window == t.windows_[page]);
  if (--n.window_users > 0)
    return;
  n.window_used = ++clock_;
  idle_windows_.insert({n.window_used, &n});
}

/// The table's page has become that of a node.
void page_pool::share_window(table& t, std::size_t page, node& n) {
  if (page < t.window_first_ || page >= t.windows_.size())
    return;
  if (n.has_window) {
    use_window(n);
    free_windows_.push_back(t.windows_[page]);
    t.windows_[page] = n.window;
    return;
  }
  n.has_window = true;
  n.window = t.windows_[page];
  n.window_users = 1;
}

page_id page_pool::take_window() {
  if (free_windows_.empty()) {
    SHOAL_ASSERT(!idle_windows_.empty());
    drop_window(*idle_windows_.begin()->second);
  }
  const page_id out = free_windows_.back();
  free_windows_.pop_back();
  return out;
}

/// @pre no sequence uses it
void page_pool::drop_window(node& n) {
  SHOAL_ASSERT(n.window_users == 0);
  idle_windows_.erase({n.window_used, &n});
  free_windows_.push_back(n.window);
  n.has_window = false;
}

} // namespace shoal::core
