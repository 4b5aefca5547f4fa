// actors/reduction/gradient_sums.cpp -- units as buckets; squares on the
// device.
#include "actors/reduction/gradient_sums.hpp"

#include "runtime/model/unit_state.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <memory>

namespace shoal::actors {

gradient_sums::gradient_sums(const reduction_context& here, events& to)
  : here_(here), to_(to),
    sums_({here.links, here.sums, here.buffers, here.plan->digest,
           here.plan->id.job, here.self, here.plan->lease,
           [this, post = here.post](std::uint64_t step, std::uint32_t unit,
                                    std::error_code error) {
             post([this, step, unit, error] {
               if (step != step_)
                 return;
               if (error)
                 to_.failed("unit " + std::to_string(unit), error);
               else
                 to_.summed(unit);
             });
           }}) {
}

void gradient_sums::begin(std::uint64_t step) {
  step_ = step;
  squares_.clear();
  std::vector<all_reduce::bucket> buckets;
  for (const model::unit_index u : here_.computed)
    buckets.push_back({u, here_.holds().computers(u), here_.gradient(u)});
  std::ranges::reverse(buckets); // in the order of the backward pass
  sums_.begin(step, std::move(buckets));
}

void gradient_sums::ready(model::unit_index unit) {
  sums_.ready(step_, unit);
}

void gradient_sums::square(model::unit_index unit) {
  const auto out = std::make_shared<core::unit_square>();
  out->unit = unit;
  here_.device->submit(
    [state = here_.states.at(unit), out](kernels::backend& device) {
      out->sum = model::sum_of_squares(*state, device);
    },
    [this, post = here_.leased_post(), step = step_, out] {
      post([this, step, out] {
        if (step != step_)
          return;
        squares_[out->unit] = *out;
        to_.squared(out->unit);
      });
    },
    {here_.plan->id.job});
}

std::optional<std::vector<core::unit_square>> gradient_sums::squares() const {
  if (squares_.size() < here_.computed.size() + here_.followed.size())
    return std::nullopt;
  std::vector<core::unit_square> out;
  for (const auto& [u, square] : squares_)
    out.push_back(square);
  return out;
}

} // namespace shoal::actors
