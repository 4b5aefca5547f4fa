// runtime/core/measure/link_estimator.cpp -- windows and the best of them.
#include "runtime/core/measure/link_estimator.hpp"

#include <algorithm>

namespace shoal::core {

link_estimator::ticket link_estimator::started(std::int64_t now_ns) {
  const bool alone = under_way_ == 0;
  if (alone) {
    window_since_ns_ = now_ns;
    window_bytes_ = 0;
  }
  ++under_way_;
  return {now_ns, ++starts_, alone};
}

void link_estimator::ended(const ticket& t, std::int64_t now_ns,
                           std::uint64_t bytes, bool arrived) {
  --under_way_;
  if (arrived) {
    window_bytes_ += in_window(t, now_ns, bytes);
    if (t.alone && t.number == starts_ && bytes <= small_bytes_max) {
      measured_ns_ = now_ns;
      latencies_[next_latency_++ % latencies_kept] =
        std::max<std::uint64_t>(std::uint64_t(now_ns - t.since_ns) / 2, 1);
    }
  }
  if (under_way_ == 0 || window_bytes_ >= window_bytes_max
      || (window_bytes_ >= window_bytes_min
          && now_ns - window_since_ns_ >= window_ns_max))
    close_window(now_ns);
}

/// The bytes of a transfer that ends now which were sent in this window.
std::uint64_t link_estimator::in_window(const ticket& t, std::int64_t now_ns,
                                        std::uint64_t bytes) const noexcept {
  if (t.since_ns >= window_since_ns_)
    return bytes;
  const double share =
    double(now_ns - window_since_ns_) / double(now_ns - t.since_ns);
  return std::uint64_t(double(bytes) * share);
}

std::uint64_t link_estimator::latency_ns() const noexcept {
  std::uint64_t best = 0;
  for (auto sample : latencies_)
    if (sample != 0 && (best == 0 || sample < best))
      best = sample;
  return best;
}

std::uint64_t link_estimator::bytes_per_s() const noexcept {
  return *std::ranges::max_element(rates_);
}

std::int64_t link_estimator::age_ns(std::int64_t now_ns) const noexcept {
  return std::max<std::int64_t>(now_ns - measured_ns_, 0);
}

void link_estimator::close_window(std::int64_t now_ns) {
  if (window_bytes_ >= window_bytes_min) {
    measured_ns_ = now_ns;
    // In microseconds, so that 16 TB fit.
    const auto us =
      std::max<std::int64_t>((now_ns - window_since_ns_) / 1000, 1);
    times_[next_rate_ % windows_kept] = now_ns - window_since_ns_;
    rates_[next_rate_++ % windows_kept] =
      std::max<std::uint64_t>(window_bytes_ * 1'000'000 / std::uint64_t(us), 1);
    forget_if_slow();
  }
  window_since_ns_ = now_ns;
  window_bytes_ = 0;
}

void link_estimator::forget_if_slow() {
  if (next_rate_ < windows_alike)
    return;
  std::array<std::uint64_t, windows_kept> latest{};
  std::int64_t time = 0;
  std::uint64_t best = 0, worst = UINT64_MAX;
  for (std::size_t i = next_rate_ - windows_alike; i < next_rate_; ++i) {
    const std::size_t slot = i % windows_kept;
    latest[slot] = rates_[slot];
    time += times_[slot];
    best = std::max(best, rates_[slot]);
    worst = std::min(worst, rates_[slot]);
  }
  if (time >= alike_ns_min && best / 2 <= worst)
    rates_ = latest;
}

} // namespace shoal::core
