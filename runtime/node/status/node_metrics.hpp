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

/// @param version of the program
void add_node_metrics(const status_input& in, const std::string& version,
                      metric_page& to);
/// All of them.
const std::vector<metric_kind>& node_metric_kinds();

} // namespace shoal::runtime
