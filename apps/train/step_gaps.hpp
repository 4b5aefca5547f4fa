// apps/train/step_gaps.hpp -- the steps that a followed log lacks.
//
// A node that was cut off for a while has a gap in its log: it goes on with the
// step that the others had reached. Steps that a run does again after a loss, or
// that another node's log has, fill gaps.
//
// Threads: one. Errors: none. Limits: gaps_max.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>

namespace shoal::apps {

class step_gaps {
public:
  /// Limit of the gaps that are remembered; later ones are not told.
  static constexpr std::size_t gaps_max = 1024;

  /// The run's first step comes after this one. Without it, steps before the first
  /// that comes are not expected. @pre none was added
  void begin_after(std::uint64_t step) { newest_ = step; }

  /// The log has this step.
  void add(std::uint64_t step) {
    if (!newest_ || step > *newest_) {
      if (newest_ && step > *newest_ + 1 && gaps_.size() < gaps_max)
        gaps_[*newest_ + 1] = step - 1;
      newest_ = step;
      return;
    }
    auto gap = gaps_.upper_bound(step);
    if (gap == gaps_.begin() || (--gap)->second < step)
      return;
    const auto [first, last] = *gap;
    gaps_.erase(gap);
    if (first < step)
      gaps_[first] = step - 1;
    if (step < last)
      gaps_[step + 1] = last;
  }

  /// "steps 453 to 1598", "steps 7, 9 to 12 and others", "step 7"; "": none
  /// @param end  the run's last step: those after it were given up, those before it
  ///             that never came are missing, too
  std::string text(std::uint64_t end) const {
    constexpr std::size_t shown = 5;
    std::string out;
    auto gaps = gaps_;
    if (newest_ && end > *newest_)
      gaps[*newest_ + 1] = end;
    const auto after = gaps.upper_bound(end);
    std::size_t named = 0;
    for (auto gap = gaps.begin(); gap != after && named < shown;
         ++gap, ++named) {
      const std::uint64_t last = std::min(gap->second, end);
      out += (named == 0 ? "" : ", ") + std::to_string(gap->first);
      if (last > gap->first)
        out += " to " + std::to_string(last);
    }
    if (named == 0)
      return {};
    const bool one = out.find_first_not_of("0123456789") == std::string::npos;
    const auto all =
      static_cast<std::size_t>(std::distance(gaps.begin(), after));
    return (one ? "step " : "steps ") + out
           + (all > named ? " and others" : "");
  }

private:
  std::optional<std::uint64_t> newest_;
  std::map<std::uint64_t, std::uint64_t> gaps_; ///< first -> last
};

} // namespace shoal::apps
