// runtime/model/text/models/word_cache.hpp -- the tokens of recent words.
//
// A word has one place, given by its hash, and is replaced by the next word with
// that place.
//
// Threads: belongs to one thread.
#pragma once

#include "kernels/common/tensor.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace shoal::model::text {

using kernels::token_id;

class word_cache {
public:
  static constexpr std::size_t words_max = 1u << 15;
  static constexpr std::size_t word_bytes_max = 64;

  word_cache() : entries_(words_max) {}
  /// Appends the tokens of a word that it remembers; an empty one has none.
  /// @returns whether it does
  bool append(std::string_view word, std::vector<token_id>& into) const {
    if (word.size() > word_bytes_max)
      return false;
    const entry& e = entries_[place(word)];
    if (e.word != word)
      return word.empty();
    into.insert(into.end(), e.tokens.begin(), e.tokens.end());
    return true;
  }
  /// Remembers a word, unless it is empty or longer than word_bytes_max.
  void put(std::string_view word, const token_id* first, std::size_t count) {
    if (word.size() > word_bytes_max || word.empty())
      return;
    entry& e = entries_[place(word)];
    e.word = word;
    e.tokens.assign(first, first + count);
  }

private:
  struct entry {
    std::string word;
    std::vector<token_id> tokens;
  };
  static std::size_t place(std::string_view word) {
    return std::hash<std::string_view>()(word) % words_max;
  }

  std::vector<entry> entries_;
};

} // namespace shoal::model::text
