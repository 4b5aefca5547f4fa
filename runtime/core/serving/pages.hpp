// runtime/core/serving/pages.hpp -- which pages of a KV cache hold which tokens.
//
// The cache of a pipeline consists of pages, each with room for the keys and
// values of page_tokens tokens. A page is a number: each stage has memory of its
// own for it, for its layers. So one pool, at the first stage, gives out the
// pages of all stages. The pages of a sequence, in the order of its tokens, are
// its table.
//
// Full pages are shared: sequences that begin with the same tokens use the same
// pages for them, computed once. Shared pages form a tree, in which each page
// follows the one with the tokens before it. A page that no sequence uses stays
// there until its room is needed; then the leaf goes whose last use is the
// longest ago. Source of the idea: L. Zheng et al., SGLang: Efficient Execution
// of Structured Language Model Programs (2024), section 3.
//
// Tokens are compared, not hashes of them: a collision would show one user's
// text to another.
//
// Windows: layers that see only the last `window` positions may have pages of
// their own, fewer of them, with numbers of their own. Of these a sequence has
// only the ones that its next rows see (slide()); as many as it may need at once
// are promised to it (grow()), shared or not, so that it never waits for them in
// the middle. They are shared at the same nodes of the tree, and kept and dropped
// on their own. A sequence begins with shared pages only as far as the window
// before its first row is there, too. Source of the idea: vLLM's hybrid KV cache
// manager.
//
// Threads: none of its own. Cost: a page of a table takes the logarithm of the
// pages that follow the same one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace shoal::core {

/// An entry of a vocabulary.
using token_id = std::int32_t;
using page_id = std::uint32_t;
inline constexpr std::size_t page_tokens = 16;

/// The pages that this number of tokens fills or begins.
[[nodiscard]] constexpr std::size_t pages_for(std::size_t tokens) noexcept {
  return (tokens + page_tokens - 1) / page_tokens;
}

/// The window pages that a sequence has at most, if its rows come in pieces of at
/// most `rows`.
[[nodiscard]] constexpr std::size_t
window_ring(std::size_t window, std::size_t rows) noexcept {
  return pages_for(window + rows - 1) + 1;
}

/// Pages of layers with a window; none: they are in the pages of all layers.
struct window_pages {
  std::uint32_t pages = 0;
  std::uint32_t window = 0; ///< positions that a row sees, with its own
};

class page_pool {
  struct node;

public:
  /// The pages of one sequence. It goes back to its pool by end().
  class table {
  public:
    [[nodiscard]] const std::vector<page_id>& pages() const noexcept {
      return pages_;
    }
    /// As pages(), in layers with a window; empty if they have no pages of their
    /// own. Those before the window of the next rows are somebody else's.
    [[nodiscard]] const std::vector<page_id>& windows() const noexcept {
      return windows_;
    }
    /// Leading pages that are shared, or may be.
    [[nodiscard]] std::size_t shared() const noexcept { return shared_.size(); }

  private:
    friend page_pool;
    std::vector<page_id> pages_;
    std::vector<node*> shared_; ///< of the first pages
    std::vector<page_id> windows_;
    std::size_t window_first_ = 0; ///< the first of windows_ that it has
    std::size_t promised_ = 0;     ///< window pages
  };

  explicit page_pool(std::uint32_t pages, window_pages windows = {});
  ~page_pool();
  page_pool(const page_pool&) = delete;
  page_pool& operator=(const page_pool&) = delete;

  /// Begins a sequence: its table has the shared pages with the tokens that it
  /// begins with. They never hold the last token, which is to be computed.
  [[nodiscard]] table begin(std::span<const token_id> tokens);
  /// The number of tokens at the beginning that shared pages hold.
  [[nodiscard]] std::size_t match(std::span<const token_id> tokens) const;
  /// Makes room for this number of tokens in all, of which at most `rows` are
  /// computed at once. @returns whether there are pages for them; otherwise the
  /// table stays as it is
  [[nodiscard]] bool grow(table& t, std::size_t tokens, std::size_t rows = 1);
  /// Gives it the window pages of rows [first, end), and takes those that neither
  /// these nor later rows see.
  /// @pre the table has room for them; no row before `first` will come again
  void slide(table& t, std::size_t first, std::size_t end);
  /// These tokens of the sequence, from its first on, have been computed: full
  /// pages of them are shared. A page that another sequence has filled with the
  /// same tokens meanwhile takes the place of this one's.
  /// @pre the table has room for them
  void computed(table& t, std::span<const token_id> tokens);
  /// Ends a sequence; the table is empty.
  void end(table& t);

  [[nodiscard]] std::uint32_t total() const noexcept { return total_; }
  /// Pages that a sequence can get: also those that are only kept.
  [[nodiscard]] std::size_t available() const noexcept {
    return free_.size() + kept_;
  }
  /// Pages that no sequence uses, kept for sequences to come.
  [[nodiscard]] std::size_t kept() const noexcept { return kept_; }
  /// Window pages that can be promised.
  [[nodiscard]] std::size_t windows_available() const noexcept {
    return windows_.pages - promised_;
  }
  [[nodiscard]] const window_pages& windows() const noexcept {
    return windows_;
  }

private:
  using page_text = std::array<token_id, page_tokens>;
  struct node {
    node* before = nullptr;
    page_text text{};
    page_id page = 0;
    std::uint32_t users = 0; ///< sequences; each also uses all pages before
    std::uint64_t used = 0;  ///< when the last of them ended
    bool has_window = false; ///< of what follows; else it was dropped
    page_id window = 0;
    std::uint32_t window_users = 0; ///< of its users
    std::uint64_t window_used = 0;
    std::map<page_text, std::unique_ptr<node>> next;
  };

  static page_text text_at(std::span<const token_id> tokens, std::size_t page);
  node* find(node& before, const page_text& text) const;
  void use(node& n);
  void leave(node& n);
  page_id take();
  void drop_oldest();
  [[nodiscard]] std::size_t first_seen(std::size_t row) const;
  void use_window(node& n);
  void leave_window(table& t, std::size_t page);
  void share_window(table& t, std::size_t page, node& n);
  page_id take_window();
  void drop_window(node& n);

  std::uint32_t total_;
  window_pages windows_;
  std::vector<page_id> free_;
  std::unique_ptr<node> root_ = std::make_unique<node>();
  std::set<std::pair<std::uint64_t, node*>> idle_; ///< leaves without users
  std::size_t kept_ = 0;
  std::size_t promised_ = 0; ///< window pages, of all tables
  std::vector<page_id> free_windows_;
  std::set<std::pair<std::uint64_t, node*>> idle_windows_; ///< without users
  std::uint64_t clock_ = 0;
};

} // namespace shoal::core
