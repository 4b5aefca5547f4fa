// runtime/core/training/step_pace.cpp -- the mean of the latest steps.
#include "runtime/core/training/step_pace.hpp"

#include <algorithm>
#include <numeric>

namespace shoal::core {

nanoseconds step_pace::step(nanoseconds took) {
  latest_[seen_++ % steps_kept] = took;
  const std::size_t count = std::min(seen_, steps_kept);
  return std::accumulate(latest_.begin(),
                         latest_.begin() + std::ptrdiff_t(count),
                         nanoseconds{0})
         / nanoseconds(count);
}

} // namespace shoal::core
