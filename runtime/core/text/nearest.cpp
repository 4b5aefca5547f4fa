// runtime/core/text/nearest.cpp -- the distance of Damerau and Levenshtein.
#include "runtime/core/text/nearest.hpp"

#include <algorithm>

namespace shoal::core {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table: `now` belongs to the first i letters of a.
  std::vector<std::size_t> now(b.size() + 1), last, before;
  for (std::size_t j = 0; j <= b.size(); ++j)
    now[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::move(last);
    last = now;
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1,
                         last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
  }
  return now[b.size()];
}

std::string_view
nearest(std::string_view word, const std::vector<std::string_view>& known,
        std::size_t distance_max) {
  std::string_view best;
  std::size_t least = distance_max + 1;
  for (std::string_view k : known) {
    const std::size_t d = edit_distance(word, k);
    if (d < least) {
      least = d;
      best = k;
    }
  }
  return best;
}

std::string_view
meant(std::string_view word, const std::vector<std::string_view>& known) {
  const std::size_t half = std::max<std::size_t>(1, word.size() / 2);
  return nearest(word, known,
                 std::min(half, std::max<std::size_t>(3, word.size() / 3)));
}

std::string suggestion(std::string_view word, std::string_view prefix) {
  return word.empty() ? std::string{}
                      : "; did you mean '" + std::string(prefix)
                          + std::string(word) + "'?";
}

std::string
did_you_mean(std::string_view word, const std::vector<std::string_view>& known,
             std::string_view prefix) {
  return suggestion(meant(word, known), prefix);
}

} // namespace shoal::core
