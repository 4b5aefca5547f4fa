// runtime/core/serving/replica_watch.cpp -- streaks of crowds and of idleness.
#include "runtime/core/serving/replica_watch.hpp"

#include <algorithm>

namespace shoal::core {

bool replica_watch::streak::lasts(bool is, nanoseconds now,
                                  nanoseconds long_enough) {
  if (!is) {
    since.reset();
    return false;
  }
  if (!since)
    since = now;
  return now - *since >= long_enough;
}

bool replica_watch::is_crowded(const line& l) {
  const pipeline_report& r = *l.report;
  if (r.streams > r.running) // some have no pages
    return true;
  if (r.running >= std::uint64_t{rows_many} * l.stages)
    return true;
  return r.per_s == 0 ? r.waiting > unmeasured_tokens_max
                      : r.waiting > r.per_s * (wait_max / 1'000'000'000);
}

std::optional<std::uint32_t>
replica_watch::look(std::uint32_t agreed, std::span<const line> placed,
                    nanoseconds now) {
  if (agreed != agreed_) {
    agreed_ = agreed;
    crowded_ = idle_ = unplaced_ = {};
  }
  if (unplaced_.lasts(placed.size() < agreed && !placed.empty(), now,
                      unplaced_after))
    return agreed - 1;
  const bool ready = !placed.empty() && placed.size() >= agreed
                     && std::ranges::all_of(placed, [](const line& l) {
                          return l.report && l.report->ready;
                        });
  const bool crowded = ready && std::ranges::all_of(placed, is_crowded);
  const bool idle =
    ready && !crowded && std::ranges::any_of(placed, [](const line& l) {
      return l.report->streams == 0;
    });
  const bool grows =
    crowded_.lasts(crowded && agreed < most_, now, times_.grow_after);
  const bool shrinks =
    idle_.lasts(idle && agreed > 1, now, times_.shrink_after);
  if (grows)
    return agreed + 1;
  if (shrinks)
    return agreed - 1;
  return std::nullopt;
}

} // namespace shoal::core
