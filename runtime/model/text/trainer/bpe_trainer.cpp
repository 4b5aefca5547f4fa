// runtime/model/text/trainer/bpe_trainer.cpp -- merges, the most frequent first.
//
// All different words follow each other in one array, with a place for each
// byte, and a border before, between and after them. A token stores its id in
// its first and in its last place, so that both neighbours of a token are found
// by the lengths of tokens; the places between are `gone`. Words are sorted by
// their frequency in the text, so that a few borders determine the count of a
// place.
#include "runtime/model/text/trainer/bpe_trainer.hpp"

#include "runtime/core/text/utf8.hpp"
#include "runtime/model/text/models/vocabulary.hpp" // vocabulary_tokens_max
#include "runtime/model/text/byte_level.hpp"
#include "runtime/model/text/patterns/unicode.hpp"
#include "runtime/model/text/pre_tokenizer.hpp" // the patterns
#include "runtime/model/text/trainer/word_counts.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>
#include <queue>
#include <unordered_map>

namespace shoal::model::text {

namespace {

using token = std::uint32_t;
using place = std::uint32_t;

constexpr token border = ~token{0};
constexpr token gone = border - 1;
/// Borders and bytes have places; a word has at least one byte.
static_assert(2 * trained_word_bytes_max + 1 < ~place{0});

/// Merges between two progress reports: some milliseconds.
constexpr std::size_t merges_between_words = 64;

std::uint64_t key_of(token left, token right) {
  return std::uint64_t{left} << 32 | right;
}

/// Two neighbours.
struct pair_entry {
  std::int64_t count = 0;
  std::vector<place> places; ///< of the left one, ascending; some are stale
  bool fresh = false;        ///< got places in this merge
};

/// A pair in the queue, with its count at that time.
struct queued {
  std::int64_t count = 0;
  std::uint64_t key = 0;

  /// The queue's first is the greatest.
  bool operator<(const queued& other) const {
    return count != other.count ? count < other.count : key > other.key;
  }
};

class trainer {
public:
  explicit trainer(const bpe_training& options) : options_(options) {}

  result<bpe_description> run(const word_counts& words) {
    add_first_tokens();
    lay_out(words);
    count_pairs();
    std::size_t next_told = 0;
    while (made_.tokens.size() < options_.vocab_size && merge_next()) {
      if (made_.merges.size() < next_told)
        continue;
      next_told += merges_between_words;
      if (status on = tell(options_.told, "training the tokenizer",
                           made_.tokens.size(), options_.vocab_size);
          !on)
        return on.why();
    }
    made_.begin = options_.begin;
    made_.words = options_.words;
    return std::move(made_);
  }

private:
  token add_token(std::string text, std::size_t bytes) {
    const auto id = static_cast<token>(made_.tokens.size());
    ids_.emplace(text, id);
    made_.tokens.push_back(std::move(text));
    lengths_.push_back(static_cast<place>(bytes));
    return id;
  }

  void add_first_tokens() {
    if (!options_.begin.empty())
      add_token(options_.begin, options_.begin.size());
    std::array<std::pair<char32_t, unsigned>, 256> bytes;
    for (unsigned b = 0; b < 256; ++b) {
      std::size_t at = 0;
      const std::string text = to_byte_level(std::string(1, char(b)));
      bytes[b] = {core::next_code(text, at), b};
    }
    std::ranges::sort(bytes);
    for (const auto& [code, b] : bytes)
      byte_ids_[b] = add_token(to_byte_level(std::string(1, char(b))), 1);
  }

  void lay_out(const word_counts& words) {
    std::vector<std::pair<std::uint64_t, std::string_view>> sorted;
    sorted.reserve(words.size());
    std::size_t size = 1;
    for (const auto& [word, count] : words) {
      sorted.emplace_back(count, word);
      size += word.size() + 1;
    }
    std::ranges::sort(sorted, std::greater<>(),
                      [](const auto& w) { return w.first; });
    places_.reserve(size);
    places_.push_back(border);
    for (const auto& [count, word] : sorted) {
      if (weights_.empty() || weights_.back().second != count)
        weights_.emplace_back(static_cast<place>(places_.size()), count);
      for (const char c : word)
        places_.push_back(byte_ids_[static_cast<unsigned char>(c)]);
      places_.push_back(border);
    }
  }

  std::int64_t weight(place at) const {
    const auto behind = std::ranges::upper_bound(
      weights_, at, {}, [](const auto& w) { return w.first; });
    return static_cast<std::int64_t>(std::prev(behind)->second);
  }

  void count_pairs() {
    for (place at = 1; at + 1 < places_.size(); ++at)
      if (places_[at] != border && places_[at + 1] != border)
        gain(places_[at], places_[at + 1], at, weight(at));
    queue_fresh();
  }

  void gain(token left, token right, place at, std::int64_t count) {
    const std::uint64_t key = key_of(left, right);
    pair_entry& pair = pairs_[key];
    pair.count += count;
    pair.places.push_back(at);
    if (!std::exchange(pair.fresh, true))
      fresh_.push_back(key);
  }

  void lose(token left, token right, std::int64_t count) {
    if (const auto at = pairs_.find(key_of(left, right)); at != pairs_.end())
      at->second.count -= count;
  }

  void queue_fresh() {
    for (const std::uint64_t key : std::exchange(fresh_, {})) {
      pair_entry& pair = pairs_.at(key);
      pair.fresh = false;
      queue_.push({pair.count, key});
    }
  }

  /// @returns false if no pair is frequent enough.
  bool merge_next() {
    while (!queue_.empty()) {
      const queued top = queue_.top();
      queue_.pop();
      const auto at = pairs_.find(top.key);
      if (at == pairs_.end())
        continue;
      const std::int64_t count = at->second.count;
      if (count < std::max<std::int64_t>(
            1, static_cast<std::int64_t>(options_.count_min))) {
        pairs_.erase(at); // its count never grows
        continue;
      }
      if (count != top.count) {
        queue_.push({count, top.key});
        continue;
      }
      std::vector<place> places = std::move(at->second.places);
      pairs_.erase(at);
      merge(static_cast<token>(top.key >> 32), static_cast<token>(top.key),
            places);
      return true;
    }
    return false;
  }

  void merge(token left, token right, const std::vector<place>& places) {
    std::string text = made_.tokens[left] + made_.tokens[right];
    const auto known = ids_.find(text);
    const token made =
      known != ids_.end()
        ? known->second
        : add_token(std::move(text), lengths_[left] + lengths_[right]);
    made_.merges.emplace_back(left, right);
    for (const place first : places) {
      const place second = first + lengths_[left];
      if (places_[first] != left || places_[second] != right)
        continue; // one of the two has become part of another token since
      const place behind = second + lengths_[right];
      const std::int64_t count = weight(first);
      if (const token before = places_[first - 1]; before != border) {
        lose(before, left, count);
        gain(before, made, first - lengths_[before], count);
      }
      if (const token next = places_[behind]; next != border) {
        lose(right, next, count);
        gain(made, next, first, count);
      }
      places_[second - 1] = gone;
      places_[second] = gone;
      places_[first] = made;
      places_[behind - 1] = made;
    }
    queue_fresh();
  }

  const bpe_training& options_;
  bpe_description made_;
  std::unordered_map<std::string, token> ids_; ///< of texts of tokens
  std::vector<place> lengths_;                 ///< of tokens, in bytes
  std::array<token, 256> byte_ids_{};
  std::vector<token> places_;
  std::vector<std::pair<place, std::uint64_t>> weights_; ///< from that place on
  std::unordered_map<std::uint64_t, pair_entry> pairs_;
  std::vector<std::uint64_t> fresh_;
  std::priority_queue<queued> queue_;
};

/// Prepares texts as the rules require. Only changed texts are copied.
class prepared_texts {
public:
  status add(std::span<const std::string_view> texts, word_rules words) {
    for (std::string_view text : texts) {
      if (!core::is_utf8(text))
        text = changed_.emplace_back(core::replace_broken(text));
      if (words == word_rules::qwen2) {
        auto normal = normalise(text, normal_form::nfc);
        if (!normal)
          return normal.why();
        if (*normal != text)
          text = changed_.emplace_back(std::move(*normal));
      }
      texts_.push_back(text);
    }
    return done{};
  }
  std::span<const std::string_view> texts() const { return texts_; }

private:
  std::deque<std::string> changed_;
  std::vector<std::string_view> texts_;
};

} // namespace

result<bpe_description> train_bpe(std::span<const std::string_view> texts,
                                  const bpe_training& options) {
  SHOAL_ASSERT(options.vocab_size >= trained_tokens_min
               && options.vocab_size <= vocabulary_tokens_max);
  prepared_texts prepared;
  if (status added = prepared.add(texts, options.words); !added)
    return added.why();
  const auto words = count_words(
    prepared.texts(),
    options.words == word_rules::qwen2 ? qwen2_pattern : gpt2_pattern,
    options.threads, options.told);
  if (!words)
    return words.why();
  std::size_t bytes = 0;
  for (const auto& [word, count] : *words)
    bytes += word.size();
  if (bytes > trained_word_bytes_max)
    return failure{"the text has " + std::to_string(bytes)
                   + " bytes of different words, more than "
                   + std::to_string(trained_word_bytes_max)
                   + ", of which a tokenizer can be trained: give fewer files"};
  return trainer(options).run(*words);
}

} // namespace shoal::model::text
