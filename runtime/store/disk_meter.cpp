// runtime/store/disk_meter.cpp -- counts bytes, keeps the latest rates.
#include "runtime/store/disk_meter.hpp"

#include <algorithm>
#include <chrono>

namespace shoal::runtime {
namespace {

core::nanoseconds steady_now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

} // namespace

disk_meter::reading disk_meter::read() const {
  reading out{bytes_, moved_at_, piece_bytes_, 0};
  std::lock_guard lock(mutex_);
  for (const std::uint64_t rate : rates_)
    if (rate > 0 && (out.bytes_per_s == 0 || rate < out.bytes_per_s))
      out.bytes_per_s = rate;
  return out;
}

disk_meter::piece::piece(disk_meter& meter, std::uint64_t bytes)
  : meter_(meter), bytes_(bytes), began_(steady_now()) {
  meter_.piece_bytes_ = bytes;
}

disk_meter::piece::~piece() {
  meter_.piece_bytes_ = 0;
  meter_.took(bytes_, steady_now() - began_);
}

void disk_meter::piece::moved(std::uint64_t bytes) {
  meter_.bytes_ += bytes;
  meter_.moved_at_ = steady_now();
}

void disk_meter::took(std::uint64_t bytes, core::nanoseconds time) {
  if (bytes < rate_bytes_min || time <= 0)
    return;
  const double rate = double(bytes) * 1e9 / double(time);
  std::lock_guard lock(mutex_);
  rates_[next_rate_] = std::max<std::uint64_t>(std::uint64_t(rate), 1);
  next_rate_ = (next_rate_ + 1) % rates_kept;
}

} // namespace shoal::runtime
