// runtime/model/text/trainer/word_counts.cpp -- words, counted by two threads.
#include "runtime/model/text/trainer/word_counts.hpp"

#include "runtime/model/text/patterns/regex.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace shoal::model::text {

namespace {

/// Bytes that a thread takes at once: small compared with a text, so that both
/// end at about the same time, and large compared with the cost of taking a
/// part.
constexpr std::size_t part_bytes = 1u << 20;

/// Printable ASCII, no space.
bool is_plain(char c) {
  return c > ' ' && c < '\x7f';
}

class counting {
public:
  counting(std::vector<std::string_view> parts, std::string_view pattern,
           const watch& told)
    : parts_(std::move(parts)), watch_(told),
      pattern_(regex::compile(pattern)) {
    for (const std::string_view part : parts_)
      all_bytes_ += part.size();
  }

  /// Takes parts until there are none. @param first  reports the progress
  void run(word_counts& counts, bool first) {
    std::vector<text_part> words;
    for (std::size_t i = next_++; i < parts_.size() && !stop_; i = next_++) {
      words.clear();
      if (first)
        note(tell(watch_, "counting words", done_bytes_, all_bytes_));
      note(pattern_->find(parts_[i], words));
      for (const text_part& word : words)
        ++counts[parts_[i].substr(word.first, word.last - word.first)];
      done_bytes_ += parts_[i].size();
    }
  }

  const std::optional<failure>& fault() const { return fault_; }

private:
  void note(const status& outcome) {
    if (outcome)
      return;
    std::lock_guard guard(mutex_);
    fault_ = outcome.why();
    stop_ = true;
  }

  std::vector<std::string_view> parts_;
  const watch& watch_;
  result<regex> pattern_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> done_bytes_{0};
  std::atomic<bool> stop_{false};
  std::uint64_t all_bytes_ = 0;
  std::mutex mutex_;
  std::optional<failure> fault_;
};

} // namespace

std::vector<std::string_view>
cut_between_words(std::string_view text, std::size_t bytes) {
  std::vector<std::string_view> parts;
  std::size_t first = 0;
  for (std::size_t at = bytes; at < text.size(); ++at) {
    if (at < 2 || text[at - 1] != '\n' || !is_plain(text[at - 2])
        || !is_plain(text[at]))
      continue;
    parts.push_back(text.substr(first, at - first));
    first = at;
    at += bytes;
  }
  if (first < text.size())
    parts.push_back(text.substr(first));
  return parts;
}

result<word_counts>
count_words(std::span<const std::string_view> texts, std::string_view pattern,
            unsigned threads, const watch& told) {
  std::vector<std::string_view> parts;
  for (const std::string_view text : texts)
    std::ranges::copy(cut_between_words(text, part_bytes),
                      std::back_inserter(parts));
  counting all(std::move(parts), pattern, told);
  word_counts mine;
  word_counts others;
  {
    std::jthread other;
    if (threads > 1) {
      try {
        other = std::jthread([&] { all.run(others, false); });
      } catch (const std::system_error&) {
        // If no second thread can be started, this one does it.
      }
    }
    all.run(mine, true);
  }
  if (all.fault())
    return *all.fault();
  if (mine.size() < others.size())
    mine.swap(others);
  for (const auto& [word, count] : others)
    mine[word] += count;
  return mine;
}

} // namespace shoal::model::text
