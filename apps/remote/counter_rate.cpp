// apps/remote/counter_rate.cpp -- a few values of the last seconds.
#include "apps/remote/counter_rate.hpp"

namespace shoal::apps {

void counter_rate::add(double value, time now) {
  if (!values_.empty()
      && (value < values_.back().second || now <= values_.back().first))
    values_.clear();
  values_.emplace_back(now, value);
  // The oldest one that is kept may be as old as the window, but not older.
  while (values_.size() > 2 && now - values_[0].first > window)
    values_.erase(values_.begin());
}

std::optional<double> counter_rate::per_s() const {
  if (values_.size() < 2)
    return std::nullopt;
  const std::chrono::duration<double> passed =
    values_.back().first - values_.front().first;
  return (values_.back().second - values_.front().second) / passed.count();
}

} // namespace shoal::apps
