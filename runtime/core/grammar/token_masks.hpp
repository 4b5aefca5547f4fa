// runtime/core/grammar/token_masks.hpp -- which tokens a grammar allows next.
//
// What a token does from a node is the same under every stack, as long as it does
// not end the rule of that node. So for a node that is on top, each token of the
// vocabulary is allowed, not allowed, or depends on the stack; that is computed
// once for all texts, when the node first comes to the top. For a text the tokens
// that depend are tried on its own stacks. (This division is XGrammar's: Y. Dong
// et al., "XGrammar: Flexible and Efficient Structured Generation Engine for Large
// Language Models", 2024, arXiv:2411.15100, section 3.1; there all nodes are done
// when a grammar is compiled.) Tokens are walked in the order of their bytes: what
// two share is stepped through once (section 3.3 there), and where a beginning is not
// allowed, all tokens that have it are passed over. Nodes from which short tokens do
// the same share what is found (node_classes.hpp).
//
// Threads: one at a time. A text may be used on one thread while another one has its
//          masks, but for allowed().
// Errors:  a token of no bytes is never allowed, nor is one that leads over a limit of
//          stacks.hpp. A grammar so ambiguous that its tokens take more than
//          mask_work_max leaves a text `lost`.
#pragma once

#include "runtime/core/grammar/node_classes.hpp" // class_bytes
#include "runtime/core/grammar/stacks.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace shoal::core::grammar {

using token = std::uint32_t;

/// Tokens in the order of their bytes.
class token_order {
public:
  /// @pre no text is empty; `texts` outlives this
  token_order(const std::vector<std::string>& texts, std::vector<token> tokens);

  std::size_t size() const noexcept { return sorted_.size(); }
  token operator[](std::size_t k) const { return sorted_[k]; }
  const std::string& text(std::size_t k) const { return (*texts_)[sorted_[k]]; }
  /// Bytes that token `k` shares with the one before it.
  std::uint32_t shared(std::size_t k) const { return shared_[k]; }
  /// The first index behind `k` whose token does not begin with the first `length`
  /// bytes of token `k`.
  /// @pre that token has as many, and length > 0
  std::uint32_t behind(std::uint32_t k, std::size_t length) const;

private:
  const std::vector<std::string>* texts_;
  std::vector<token> sorted_;
  std::vector<std::uint32_t> shared_;
  std::array<std::uint32_t, 257> first_{}; ///< by the first byte
};

/// The bytes of each token, and their order.
class token_list {
public:
  /// @param texts of token 0, 1, ...; empty for those that are no text, such as
  ///        the end of a sequence
  /// @param first the same of a text's first token, if some differ: decoders leave
  ///        out a space there
  explicit token_list(std::vector<std::string> texts,
                      std::vector<std::string> first = {});
  // Orders refer to the texts.
  token_list(const token_list&) = delete;
  token_list& operator=(const token_list&) = delete;

  std::size_t size() const noexcept { return texts_.size(); }
  const std::string& text(token t) const { return texts_[t]; }
  const std::string& first_text(token t) const {
    return first_.empty() ? texts_[t] : first_[t];
  }
  /// Tokens whose text differs where it is the first one.
  const std::vector<token>& other_first() const noexcept {
    return other_first_;
  }
  /// Those of them that have a text there, by that.
  const token_order& by_first() const noexcept { return by_first_; }
  /// Tokens of 1 to class_bytes bytes.
  const token_order& few_bytes() const noexcept { return few_bytes_; }
  /// Those of more.
  const token_order& many_bytes() const noexcept { return many_bytes_; }

private:
  std::vector<std::string> texts_, first_;
  std::vector<token> other_first_;
  token_order few_bytes_, many_bytes_, by_first_;
};

/// A bit for each token: whether it is allowed.
class token_set {
public:
  explicit token_set(std::size_t tokens) : words_((tokens + 63) / 64) {}
  void add(token t) { words_[t / 64] |= std::uint64_t{1} << t % 64; }
  void remove(token t) { words_[t / 64] &= ~(std::uint64_t{1} << t % 64); }
  bool has(token t) const { return words_[t / 64] >> t % 64 & 1; }
  void add_all(const token_set& other) {
    for (std::size_t i = 0; i != other.words_.size(); ++i)
      words_[i] |= other.words_[i];
  }
  std::size_t bytes() const noexcept {
    return words_.size() * sizeof words_[0];
  }
  void clear() { std::fill(words_.begin(), words_.end(), 0); }
  bool empty() const;
  std::span<const std::uint64_t> words() const noexcept { return words_; }

private:
  std::vector<std::uint64_t> words_;
};

/// Memory for the nodes' tokens; what exceeds it is computed again.
inline constexpr std::size_t node_masks_bytes_max = std::size_t{64} << 20;
/// The same of all grammars that count it together.
inline constexpr std::size_t all_masks_bytes_max = std::size_t{256} << 20;
/// Memory of the positions of one text, after which they are made anew; more if
/// its stacks alone take half of it.
inline constexpr std::size_t positions_bytes_max = std::size_t{4} << 20;

/// Work to find the tokens that may come next, at most: bytes of tokens that are
/// walked over, and stacks::work(). A new node within a string takes some 500,000 of a
/// vocabulary of 150,000 tokens, others hardly any; one or two are new after a token. All of it
/// takes 0.9 s for the most ambiguous grammar that was tried (26 November 2026), which
/// is as long as other texts may have to wait.
inline constexpr std::size_t mask_work_max = 16'000'000;
/// Memory of positions while that is done.
inline constexpr std::size_t mask_bytes_max = std::size_t{64} << 20;
/// What of these is kept for the next masks of the same grammar.
inline constexpr std::size_t walked_bytes_max = std::size_t{1} << 20;

/// A grammar with a vocabulary; texts share it.
class token_masks {
public:
  using shared_count = std::shared_ptr<std::atomic<std::size_t>>;

  /// @param counted where the memory of several grammars is counted; may be null
  token_masks(grammar of, std::shared_ptr<const token_list> tokens,
              shared_count counted = nullptr);
  ~token_masks() { forget(); }
  // constrained_text refers to the grammar.
  token_masks(const token_masks&) = delete;
  token_masks& operator=(const token_masks&) = delete;

  const grammar& rules() const noexcept { return grammar_; }
  const token_list& tokens() const noexcept { return *tokens_; }

  /// Tokens of an order that depend on the stack, ascending.
  struct range {
    std::uint32_t first = 0, last = 0; ///< indices [first, last)
  };
  /// Tokens of an order from a node, whatever the stack below.
  struct of_node {
    std::vector<token> allowed; ///< or, if that is smaller:
    token_set allowed_set{0};
    std::vector<range> depends;

    void add_to(token_set& out) const;
    std::size_t bytes() const noexcept;
  };
  struct found {
    const of_node* few_bytes = nullptr;
    const of_node* many_bytes = nullptr;
  };
  /// @param work that may be done, less what is done
  /// @returns nothing if that is not enough
  std::optional<found> at(node_id top, std::size_t& work);

private:
  std::unique_ptr<of_node>
  compute(node_id top, const token_order& order, std::size_t& work);
  void count(std::size_t bytes);
  void forget();

  grammar grammar_;
  std::shared_ptr<const token_list> tokens_;
  std::vector<node_id> classes_;
  std::optional<stacks> walked_; ///< steps of the last masks that were computed
  std::unordered_map<node_id, std::unique_ptr<of_node>> known_classes_;
  std::unordered_map<node_id, std::unique_ptr<of_node>> known_nodes_;
  std::size_t bytes_ = 0;
  shared_count counted_;
};

/// A text as it grows by tokens.
class constrained_text {
public:
  explicit constrained_text(std::shared_ptr<token_masks> by);

  /// Sets the tokens that may come next; none of a text that is lost.
  void allowed(token_set& out);
  /// Adds a token. @returns false: it is not allowed; then nothing is
  bool add(token t);
  /// Whether the text may end here.
  bool may_end() const { return stacks_->may_end(at_); }
  /// Whether it is complete: nothing may be added.
  bool only_ends() const { return stacks_->only_ends(at_); }

  /// Whether the tokens that may come next could not be found.
  bool lost() const { return lost_; }

private:
  bool add_depending(std::span<const token_masks::range> depends,
                     const token_order& order, position from, std::size_t& work,
                     token_set& out);
  const std::string& text_of(token t) const;
  void shrink();

  std::shared_ptr<token_masks> by_;
  std::unique_ptr<stacks> stacks_;
  position at_ = nowhere;
  bool begun_ = false; ///< it has a token
  std::size_t bytes_max_ = positions_bytes_max;
  bool lost_ = false;
};

} // namespace shoal::core::grammar
