// runtime/model/text/models/word_piece.hpp -- WordPiece: the longest token
// first.
//
// A word takes the longest token that it begins with, then the rest the longest
// with a prefix before it ("##"). If that leads nowhere, or the word is too
// long, all of it is one unknown token.
//
// Threads: immutable.
// Cost:    the bytes of a word times those of the longest token, at most
//          searched_token_bytes_max.
// Errors:  parse: key and entry. encode: the unknown token is needed, but not in
//          the vocabulary.
// Source:  Wu et al.: Google's Neural Machine Translation System, 2016;
//          `tokenizers` 0.23, models/wordpiece.
#pragma once

#include "runtime/model/text/models/byte_trie.hpp"
#include "runtime/model/text/models/word_cache.hpp"

#include <optional>

namespace shoal::model::text {

class word_piece {
public:
  /// Reads "model".
  static word_piece parse(const json_view& from);

  /// Appends the tokens of a piece. @pre piece is UTF-8
  /// @param cache  of pieces with the same banned tokens
  status
  encode(std::string_view piece, word_cache& cache, std::vector<token_id>& into,
         banned_tokens banned = nullptr) const;

  const vocabulary& tokens() const { return vocabulary_; }

private:
  bool find_tokens(std::string_view word, std::vector<token_id>& into,
                   banned_tokens banned) const;

  vocabulary vocabulary_;
  byte_trie trie_;
  byte_trie::node continued_ = byte_trie::root; ///< behind the prefix, or none
  std::string unk_token_;
  std::optional<token_id> unk_;
  std::uint64_t characters_max_ = 0; ///< of a word
};

} // namespace shoal::model::text
