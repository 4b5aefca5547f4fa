// runtime/node/status/node_metrics.hpp -- a node's peers, links, jobs and resources,
// for Prometheus.
//
// Threads: any.
#pragma once

#include "runtime/node/status/status.hpp"
#include "runtime/observe/metric_page.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::runtime {

struct node_resources {
  std::string version; ///< of the program
  std::uint64_t store_bytes = 0;
  std::uint64_t store_room_bytes = 0; ///< that may still be filled
};

void add_node_metrics(const status_input& in, const node_resources& has,
                      metric_page& to);
/// All of them.
const std::vector<metric_kind>& node_metric_kinds();

} // namespace shoal::runtime
