// runtime/model/text/added_tokens.hpp -- "added_tokens": found before all else.
//
// Tokens that appear literally in the text, such as <|endoftext|>. Those that
// are not "normalized" are found in the text itself, the others in the output
// of the normalizer; each time the leftmost, and there the longest. lstrip and
// rstrip also take the white space beside them; single_word requires that no
// word character is beside.
//
// Threads: immutable.
// Cost:    for each byte of text, steps down a tree of bytes, at most the
//          longest token.
// Errors:  parse: an id that disagrees with the vocabulary or the order.
// Source:  `tokenizers` 0.23, tokenizer/added_vocabulary.rs
#pragma once

#include "runtime/core/text/text_range.hpp"
#include "runtime/model/text/models/vocabulary.hpp"
#include "runtime/model/text/normalizer.hpp"

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::model::text {

/// Limits: added tokens of a file; bytes of one; bytes of all after the
/// normalizer: four times more than a file of the largest size could hold.
inline constexpr std::size_t added_tokens_max = 1u << 18;
inline constexpr std::size_t added_token_bytes_max = 4096;
inline constexpr std::size_t added_forms_bytes_max = 512u << 20;

struct added_token {
  std::string content;
  std::string form; ///< after the normalizer, if it is normalized
  token_id id = 0;
  bool single_word = false;
  bool lstrip = false;
  bool rstrip = false;
  bool normalized = true;
  bool special = false;
};

/// A part of a text: a token, or the text between two (token < 0).
struct section {
  std::size_t first = 0;
  std::size_t last = 0;
  token_id token = -1;
};

class added_tokens {
public:
  static added_tokens parse(const json_view& from, const vocabulary& tokens,
                            const normalizer& normal);

  /// Cuts a text at tokens that are (not) normalized. No section between
  /// tokens is empty. @pre text is UTF-8
  /// @param foreign  parts, in order, within which no special token is taken
  std::vector<section>
  cut(std::string_view text, bool normalized,
      std::span<const core::text_range> foreign = {}) const;

  const std::vector<added_token>& all() const { return all_; }

private:
  /// Texts as a tree of bytes; children are lists.
  class tree {
  public:
    tree();
    void add(std::string_view text, std::size_t index);
    /// @returns the index of the longest text at `at`, or -1.
    std::ptrdiff_t
    longest(std::string_view text, std::size_t at, std::size_t& bytes) const;
    bool empty() const { return nodes_.empty(); }

  private:
    struct node {
      std::int32_t child = -1;
      std::int32_t sibling = -1;
      std::int32_t token = -1;
      unsigned char byte = 0;
    };
    std::vector<node> nodes_;
    std::array<std::int32_t, 256> roots_{};
  };

  void add(const json_view& from, const vocabulary& tokens,
           const normalizer& normal, std::uint64_t& next_id);

  std::vector<added_token> all_;
  std::size_t forms_bytes_ = 0; ///< of all their forms
  tree plain_;
  tree normalized_;
};

} // namespace shoal::model::text
