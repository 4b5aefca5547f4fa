// runtime/core/serving/pass_pace.cpp -- two smoothed times.
#include "runtime/core/serving/pass_pace.hpp"

#include <algorithm>

namespace shoal::core {

static void smooth(std::uint64_t& value, std::uint64_t with) {
  with = std::max<std::uint64_t>(with, 1);
  value = value == 0 ? with : (3 * value + with) / 4;
}

void pass_pace::took(std::size_t generating, std::size_t of_prompts,
                     nanoseconds time) {
  if (time <= 0)
    return;
  const auto t = std::uint64_t(time);
  if (of_prompts == 0) {
    smooth(alone_, t);
    return;
  }
  if (of_prompts < measured_min)
    return;
  if (generating == 0)
    smooth(token_, t / of_prompts);
  else if (alone_ == 0 && token_ != 0) {
    // A short prompt's token may have told too high a cost.
    if (const std::uint64_t p = of_prompts * token_; p < t - t / 8)
      smooth(alone_, t - p);
  } else if (alone_ != 0 && t > alone_)
    smooth(token_, (t - alone_) / of_prompts);
}

std::size_t pass_pace::beside() const noexcept {
  if (alone_ == 0 || token_ == 0)
    return first_beside;
  return std::max<std::size_t>(beside_min,
                               alone_ * added_percent / 100 / token_);
}

} // namespace shoal::core
