// runtime/model/text/models/unigram.hpp -- Unigram: the likeliest tokens.
//
// Each token has a score, the logarithm of its probability. Of all ways to cut a
// piece into tokens the one with the highest sum is taken (Viterbi); of equal
// sums the one whose last token is longer. A character that is no token itself
// may become the unknown token, which scores lower than all others. Unknown
// tokens side by side are one; with byte_fallback, their bytes instead, if all
// of these are tokens.
//
// Sums are doubles, added from left to right, as the package has them, so that
// equal sums stay equal.
//
// Threads: immutable.
// Cost:    the bytes of a piece times those of the longest token, at most
//          searched_token_bytes_max; 16 bytes of memory for each byte of the
//          longest stretch in which tokens overlap.
// Errors:  parse: key and entry. encode: a stretch over overlap_bytes_max, or a
//          character without a token where there is no unknown token either.
// Source:  Kudo: Subword Regularization, 2018; `tokenizers` 0.23,
//          models/unigram.
#pragma once

#include "runtime/model/text/models/byte_trie.hpp"
#include "runtime/model/text/models/word_cache.hpp"

#include <optional>

namespace shoal::model::text {

/// Limits: a stretch of text in which every place is within some token (1 GiB
/// of memory); the absolute value of a score, so that every sum is a number.
inline constexpr std::size_t overlap_bytes_max = 1u << 26;
inline constexpr double token_score_max = 1e100;

/// How much lower than the lowest score that of an unknown token is.
inline constexpr double unknown_penalty = 10;

class unigram {
public:
  /// Reads "model".
  static unigram parse(const json_view& from);

  /// Appends the tokens of a piece. @pre piece is UTF-8
  /// @param cache  of pieces with the same banned tokens
  status
  encode(std::string_view piece, word_cache& cache, std::vector<token_id>& into,
         banned_tokens banned = nullptr) const;

  const vocabulary& tokens() const { return vocabulary_; }

private:
  class reading;

  void read_vocabulary(const json_view& from);

  vocabulary vocabulary_;
  byte_trie trie_;
  std::vector<double> scores_; ///< by id
  byte_tokens bytes_{};
  double unknown_score_ = 0;
  std::optional<token_id> unk_;
  bool byte_fallback_ = false;
};

} // namespace shoal::model::text
