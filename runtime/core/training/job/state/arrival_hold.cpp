// runtime/core/training/job/state/arrival_hold.cpp -- when steps stand still for a
// view.
#include "runtime/core/training/job/state/arrival_hold.hpp"

#include "runtime/core/planning/arrivals.hpp"

#include <algorithm>

namespace shoal::core {

void arrival_hold::halt() {
  arrived_at_.clear();
  asked_ = false;
  not_before_ = 0;
}

void arrival_hold::take(const duty& d, const peer_id& from,
                        std::uint64_t step) {
  if (d.holds.of(from).arrives.empty())
    return;
  std::uint64_t& at = arrived_at_[from];
  at = std::max(at, step);
}

/// Whether every receiver has all its units, as of `step` at least.
bool arrival_hold::all_arrived(const duty& d, std::uint64_t step) const {
  return std::ranges::all_of(d.holds.receivers(), [&](const peer_id& p) {
    const auto at = arrived_at_.find(p);
    return at != arrived_at_.end() && at->second >= step;
  });
}

bool arrival_hold::due(const duty& d, std::uint64_t step,
                       nanoseconds now) const {
  return !d.place->arriving.empty() && now >= not_before_
         && all_arrived(d, step > 1 ? step - 1 : 0);
}

void arrival_hold::ask_if_arrived(const duty& d, std::uint64_t step,
                                  job_actions& out) {
  if (asked_ || !all_arrived(d, step))
    return;
  asked_ = true;
  out.emplace_back(job_action::arrivals_complete{d.header.since});
}

bool arrival_hold::take_end(nanoseconds now) {
  if (now - since_ < hold_max)
    return false;
  not_before_ = now + hold_again_after;
  return true;
}

} // namespace shoal::core
