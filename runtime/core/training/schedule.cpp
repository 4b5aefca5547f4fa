// runtime/core/training/schedule.cpp -- 1F1B with the weight gradient apart.
#include "runtime/core/training/schedule.hpp"

#include "runtime/core/assert.hpp"

#include <algorithm>

namespace shoal::core {

std::vector<work_item> make_schedule(std::uint32_t stage, std::uint32_t stages,
                                     std::uint32_t first, std::uint32_t last) {
  SHOAL_ASSERT(stage < stages && first <= last);
  std::uint32_t count = last - first;
  std::uint32_t ahead = live_microbatches_max(stage, stages, count);
  std::vector<work_item> items;
  items.reserve(3 * std::size_t{count});
  std::uint32_t forwards = 0;
  for (std::uint32_t done = 0; done < count; ++done) {
    while (forwards < count && forwards < done + ahead)
      items.push_back({work_kind::forward, first + forwards++});
    items.push_back({work_kind::input_gradient, first + done});
    items.push_back({work_kind::weight_gradient, first + done});
  }
  return items;
}

std::vector<work_item>
make_forward_schedule(std::uint32_t first, std::uint32_t last) {
  SHOAL_ASSERT(first <= last);
  std::vector<work_item> items;
  items.reserve(last - first);
  for (std::uint32_t m = first; m < last; ++m)
    items.push_back({work_kind::forward, m});
  return items;
}

std::uint32_t live_microbatches_max(std::uint32_t stage, std::uint32_t stages,
                                    std::uint32_t microbatches) {
  SHOAL_ASSERT(stage < stages);
  return std::min(stages - stage, microbatches);
}

} // namespace shoal::core
