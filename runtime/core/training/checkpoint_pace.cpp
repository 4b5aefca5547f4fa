// runtime/core/training/checkpoint_pace.cpp -- distance = interval - lag.
#include "runtime/core/training/checkpoint_pace.hpp"

#include "runtime/core/assert.hpp"

namespace shoal::core {

void checkpoint_pace::resume(std::uint64_t newest, std::uint64_t lag,
                             bool restored) {
  begun_ = newest;
  ended_ = newest + 1;
  lag_ = lag;
  writing_ = false;
  restored_ = restored;
}

void checkpoint_pace::heard(std::uint64_t lag, bool writing) {
  if (lag > 0)
    lag_ = lag;
  writing_ = writing;
}

void checkpoint_pace::published(std::uint64_t begun, std::uint64_t now) {
  SHOAL_ASSERT(begun < now);
  ended(begun);
  seen_.push_back(now - begun);
  if (seen_.size() > lag_window)
    seen_.pop_front();
}

std::uint64_t checkpoint_pace::distance() const noexcept {
  std::uint64_t ahead = restored_ ? every_ - every_ / 4 : every_ / 2;
  if (lag_ > 0)
    ahead = std::min(lag_ + 1, every_ - every_ / 2);
  return every_ > ahead ? every_ - ahead : 1;
}

bool checkpoint_pace::due(std::uint64_t step) const noexcept {
  return every_ > 0 && !writing_ && step >= begun_ + distance();
}

bool checkpoint_pace::slow(std::uint64_t step) const noexcept {
  if (every_ == 0)
    return false;
  const bool held_up = writing_ && step + lag_ > begun_ + every_;
  return lag_ >= every_ || held_up;
}

std::uint64_t checkpoint_pace::lag() const noexcept {
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < seen_.size(); ++i)
    if (seen_[i] <= every_ / 2 || i + long_lag_window >= seen_.size())
      largest = std::max(largest, seen_[i]);
  return largest;
}

} // namespace shoal::core
