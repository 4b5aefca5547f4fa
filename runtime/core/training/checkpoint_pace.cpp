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
  const std::uint64_t unknown = restored_ ? every_ - every_ / 4 : every_ / 2;
  const std::uint64_t ahead = lag_ > 0 ? lag_ + 1 : unknown;
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
  return seen_.empty() ? 0 : *std::ranges::max_element(seen_);
}

} // namespace shoal::core
