// runtime/core/planning/layout/pass_times.cpp -- the job's costs are exchanged.
#include "runtime/core/planning/layout/pass_times.hpp"

#include "runtime/core/view.hpp"

namespace shoal::core {

pass_times times_of_pass(const view& v, const job_entry& job,
                         const island_place& place, const pass_costs& costs) {
  if (place.replicas.empty())
    return {};
  job_entry of = job;
  of.block_flops = costs.block_flops;
  of.head_flops = costs.head_flops;
  of.block_traffic_bytes = costs.block_traffic_bytes;
  of.head_traffic_bytes = costs.head_traffic_bytes;
  of.boundary_bytes = costs.boundary_bytes;
  layout_problem p{of, {}, {}, nullptr, {}};
  for (const member& m : v.members)
    p.members.push_back(&m);
  cost_model model(p);
  const auto replicas = model.indexed(place.replicas);
  if (!replicas)
    return {};
  model.use(*replicas);
  const cost_model::pipeline_time t = model.time_of(replicas->front());
  return {nanoseconds(std::min(t.fill, cost_never)),
          nanoseconds(std::min(t.bottleneck, cost_never))};
}

} // namespace shoal::core
