// runtime/model/text/models/word_piece.cpp -- WordPiece: the longest token
// first.
#include "runtime/model/text/models/word_piece.hpp"

#include "runtime/core/text/utf8.hpp"

#include <limits>

namespace shoal::model::text {

word_piece word_piece::parse(const json_view& from) {
  word_piece made;
  made.unk_token_ = from["unk_token"].string();
  const std::string prefix(from["continuing_subword_prefix"].string());
  made.characters_max_ = from["max_input_chars_per_word"].number(
    std::numeric_limits<std::uint64_t>::max());
  if (!from.ok())
    return made;
  made.vocabulary_ = read_vocabulary(from["vocab"], searched_token_bytes_max);
  if (!from.ok())
    return made;
  made.trie_ = byte_trie(made.vocabulary_);
  made.continued_ = made.trie_.find(prefix);
  if (auto it = made.vocabulary_.find(made.unk_token_);
      it != made.vocabulary_.end())
    made.unk_ = it->second;
  return made;
}

/// @returns false if a part of the word has no token; `into` then has those
/// before it.
bool word_piece::find_tokens(std::string_view word, std::vector<token_id>& into,
                             banned_tokens banned) const {
  std::size_t characters = 0;
  for (std::size_t at = 0; at < word.size(); ++characters) {
    if (characters == characters_max_)
      return false;
    core::next_code(word, at);
  }
  for (std::size_t first = 0; first < word.size();) {
    byte_trie::node node = first == 0 ? byte_trie::root : continued_;
    token_id longest = -1;
    std::size_t end = first;
    for (std::size_t at = first; node != byte_trie::none && at < word.size();) {
      node = trie_.child(node, word[at++]);
      if (node != byte_trie::none && trie_.token(node) >= 0
          && !is_banned(banned, trie_.token(node))) {
        longest = trie_.token(node);
        end = at;
      }
    }
    if (longest < 0)
      return false;
    into.push_back(longest);
    first = end;
  }
  return true;
}

status
word_piece::encode(std::string_view piece, word_cache& cache,
                   std::vector<token_id>& into, banned_tokens banned) const {
  if (cache.append(piece, into))
    return done{};
  const std::size_t before = into.size();
  if (!find_tokens(piece, into, banned)) {
    if (!unk_)
      return failure{"the text has a word without tokens, and unk_token "
                     + in_quotes(unk_token_) + " is not in the vocabulary"};
    into.resize(before);
    into.push_back(*unk_);
  }
  cache.put(piece, into.data() + before, into.size() - before);
  return done{};
}

} // namespace shoal::model::text
