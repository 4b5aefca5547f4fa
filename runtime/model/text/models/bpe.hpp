// runtime/model/text/models/bpe.hpp -- byte pair encoding of one piece of text.
//
// A piece is cut into characters; a character that the vocabulary lacks becomes
// its bytes (byte_fallback) or the unknown token. Then the neighbours with the
// lowest rank merge, leftmost first, until no pair is in the table of merges.
//
// Neighbours are first separated if no merge can ever cross their border:
// merges join the last character of one token with the first of another, so a
// pair of characters that no merge joins stays two tokens whatever is around
// it. This changes no token, and makes words of a long piece (families without
// pre-tokenizer pass a whole text as one), which the cache then knows. If
// merges take bytes or the unknown token, whose texts are not characters, no
// piece is cut.
//
// Threads: bpe is immutable; a word_cache belongs to one thread.
// Cost:    O(n log n) for a word of n characters that is not in the cache:
//          a queue over a linked list, 50 bytes a character.
// Errors:  parse: key and entry. encode: a word over word_symbols_max, or a
//          character without a token where there is no unknown token either.
// Source:  Sennrich, Haddow, Birch: Neural Machine Translation of Rare Words
//          with Subword Units, 2016; `tokenizers` 0.23, models/bpe.
#pragma once

#include "runtime/model/text/models/flat_map.hpp"
#include "runtime/model/text/models/vocabulary.hpp"
#include "runtime/model/text/models/word_cache.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::model::text {

/// Limits: merges; characters of a word (at most 2 GiB of memory).
inline constexpr std::size_t merges_max = 1u << 23;
inline constexpr std::size_t word_symbols_max = 1u << 25;

class bpe {
public:
  /// Reads "model". Faults go to the view; notices are sentences.
  static bpe parse(const json_view& from, std::vector<std::string>& notices);

  /// Appends the tokens of a piece. @pre piece is UTF-8
  /// @param cache  of pieces with the same banned tokens
  status
  encode(std::string_view piece, word_cache& cache, std::vector<token_id>& into,
         banned_tokens banned = nullptr) const;

  const vocabulary& tokens() const { return vocabulary_; }

private:
  struct merge {
    std::uint32_t rank = 0;
    token_id id = 0;
  };
  struct symbol {
    token_id id = 0;
    std::size_t first = 0; ///< byte of the piece where it begins
  };
  struct reading;

  /// A key of merges_ and joins_.
  static std::uint64_t pair_key(token_id left, token_id right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32
           | static_cast<std::uint32_t>(right);
  }

  void read_merges(const json_view& from);
  void add_merge(const json_view& at, std::string_view left,
                 std::string_view right, std::uint32_t rank);
  void index_characters();
  status read_characters(reading& r) const;
  status add(reading& r, symbol next) const;
  void end_word(reading& r, std::size_t last) const;
  void merge_word(const std::vector<symbol>& word,
                  std::vector<token_id>& into) const;

  vocabulary vocabulary_;
  flat_map<token_id> characters_; ///< code point -> token
  flat_map<merge> merges_;        ///< left << 32 | right
  flat_map<char> joins_;          ///< characters that some merge joins
  byte_tokens bytes_{};
  std::string unk_token_;
  std::optional<token_id> unk_;
  bool cuts_ = true; ///< merges take characters only, not <0x..> or unk
  bool has_unk_ = false;
  bool fuse_unk_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
};

} // namespace shoal::model::text
