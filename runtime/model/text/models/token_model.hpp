// runtime/model/text/models/token_model.hpp -- "model" of a tokenizer.json:
// BPE, Unigram or WordPiece.
//
// Threads: immutable.
// Errors:  parse: a type that is not supported is named, or the key and entry.
//          encode: as that of the model.
#pragma once

#include "runtime/model/text/models/bpe.hpp"
#include "runtime/model/text/models/unigram.hpp"
#include "runtime/model/text/models/word_piece.hpp"

#include <variant>

namespace shoal::model::text {

class token_model {
public:
  /// Reads "model". Faults go to the view; notices are sentences.
  static token_model
  parse(const json_view& from, std::vector<std::string>& notices);

  /// Appends the tokens of a piece. @pre piece is UTF-8
  /// @param cache  of pieces with the same banned tokens
  status
  encode(std::string_view piece, word_cache& cache, std::vector<token_id>& into,
         banned_tokens banned = nullptr) const;

  const vocabulary& tokens() const;

private:
  std::variant<bpe, unigram, word_piece> is_;
};

} // namespace shoal::model::text
