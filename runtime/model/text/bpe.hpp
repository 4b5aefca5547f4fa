// runtime/model/text/bpe.hpp -- byte pair encoding of one piece of text.
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

#include "kernels/tensor.hpp"
#include "runtime/model/text/flat_map.hpp"
#include "runtime/model/text/json_view.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shoal::model::text {

using kernels::token_id;

/// Limits: entries of a vocabulary; bytes of a token (a decoder shows up to
/// that many for each requested id; known files have some hundred at most);
/// merges; the largest gap between ids; characters of a word (at most 2 GiB of
/// memory).
inline constexpr std::size_t vocabulary_tokens_max = 1u << 22;
inline constexpr std::size_t token_bytes_max = 1u << 16;
inline constexpr std::size_t merges_max = 1u << 23;
inline constexpr std::size_t id_gap_max = 1u << 16;
inline constexpr std::size_t word_symbols_max = 1u << 25;

/// Lets a transparent look-up take a string_view.
struct text_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>()(text);
  }
};
using vocabulary =
  std::unordered_map<std::string, token_id, text_hash, std::equal_to<>>;

/// The tokens of recent words. A word has one place, given by its hash, and is
/// replaced by the next word with that place.
class word_cache {
public:
  static constexpr std::size_t words_max = 1u << 15;
  static constexpr std::size_t word_bytes_max = 64;

  word_cache() : entries_(words_max) {}
  /// @returns null if the word is not there.
  const std::vector<token_id>* find(std::string_view word) const;
  void put(std::string_view word, const token_id* first, std::size_t count);

private:
  struct entry {
    std::string word;
    std::vector<token_id> tokens;
  };
  static std::size_t place(std::string_view word);

  std::vector<entry> entries_;
};

class bpe {
public:
  /// Reads "model". Faults go to the view; notices are sentences.
  static bpe parse(const json_view& from, std::vector<std::string>& notices);

  /// Appends the tokens of a piece. @pre piece is UTF-8
  status encode(std::string_view piece, word_cache& cache,
                std::vector<token_id>& into) const;

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

  void read_vocabulary(const json_view& from);
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
  std::vector<token_id> bytes_;   ///< 256 tokens <0x..>, -1 where missing
  std::string unk_token_;
  std::optional<token_id> unk_;
  bool cuts_ = true; ///< merges take characters only, not <0x..> or unk
  bool has_unk_ = false;
  bool fuse_unk_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
};

} // namespace shoal::model::text
