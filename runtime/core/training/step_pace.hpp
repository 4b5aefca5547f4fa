// runtime/core/training/step_pace.hpp -- how long steps take where only reports of
// them are seen.
//
// A peer that computes nothing votes as soon as a step begins, so a step lasts
// there until the votes of the others are in. Over a slow link these may come
// bunched: then one step seems to take long and the next no time, which would be
// a speed of millions of tokens/s. The mean of the latest few is that of the run.
//
// Units: nanoseconds. Threads: none.
#pragma once

#include "runtime/core/ids.hpp"

#include <array>
#include <cstddef>

namespace shoal::core {

class step_pace {
public:
  /// Higher: steadier, and later to show that the run has become slower.
  static constexpr std::size_t steps_kept = 8;

  /// A step that lasted `took` here. @returns the mean of the latest
  nanoseconds step(nanoseconds took);
  /// Steps under another assignment take another time.
  void restart() { seen_ = 0; }

private:
  std::array<nanoseconds, steps_kept> latest_{};
  std::size_t seen_ = 0;
};

} // namespace shoal::core
