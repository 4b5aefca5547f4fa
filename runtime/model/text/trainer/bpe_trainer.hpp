// runtime/model/text/trainer/bpe_trainer.hpp -- a byte-level BPE tokenizer, learned
// from text.
//
// The rules of a family cut the text into words. Tokens are: the token that
// begins a text, if there is one; then the 256 bytes in the order of their
// characters (byte_level.hpp); then one for each merge. The most frequent pair
// of neighbours merges; among equally frequent pairs the one with the lowest
// left id, then with the lowest right id. This goes on until there are
// vocab_size tokens or no pair is frequent enough. The package `tokenizers`
// makes the same file of the same texts by BpeTrainer(min_frequency=count_min,
// special_tokens=[begin], initial_alphabet=ByteLevel.alphabet()) with the
// normalizer and pre-tokenizer that to_json() writes.
//
// The result depends on the texts alone, not on their order or on threads.
//
// Threads: at most two, for counting words.
// Cost:    one pass over the text; then each merge touches the places of its
//          pair in the different words. Memory: 100 bytes for each different
//          word, and 10 for each of its bytes.
// Errors:  a failure says which limit was exceeded, or that told() has ended
//          it.
// Source:  Sennrich, Haddow, Birch: Neural Machine Translation of Rare Words
//          with Subword Units, 2016; `tokenizers` 0.23, models/bpe/trainer.rs.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/watch.hpp"
#include "runtime/model/text/tokenizer_json.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shoal::model::text {

/// The token that begins a text, and so follows its end, with GPT-2's name.
inline constexpr std::string_view begin_of_text = "<|endoftext|>";

/// The bytes and the token that begins a text: the smallest vocabulary.
inline constexpr std::size_t trained_tokens_min = 257;

/// Bytes of all different words: 5 GiB of memory. The words of 100 GB of web
/// pages have fewer.
inline constexpr std::size_t trained_word_bytes_max = std::size_t{1} << 29;

struct bpe_training {
  word_rules words = word_rules::gpt2;
  std::size_t vocab_size = 4096; ///< tokens at most
  /// A less frequent pair is not merged. Higher: fewer tokens that only one
  /// document uses, at the cost of longer texts.
  std::uint64_t count_min = 2;
  std::string begin{begin_of_text}; ///< empty: there is none
  unsigned threads = 2;             ///< for counting; 1 or 2
  watch told;                       ///< is told the progress; may be empty
};

/// Learns a tokenizer. Invalid UTF-8 in a text counts as U+FFFD.
/// @pre vocab_size >= trained_tokens_min, and at most vocabulary_tokens_max
result<bpe_description>
train_bpe(std::span<const std::string_view> texts, const bpe_training& options);

} // namespace shoal::model::text
