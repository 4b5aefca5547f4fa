// actors/gateway/gateway_metrics.hpp -- what a gateway counts, for Prometheus.
#pragma once

#include "actors/gateway/served_model.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace shoal::actors {

/// Since the start.
struct gateway_counts {
  std::uint64_t requests = 0;
  std::uint64_t clients_gone = 0; ///< before their answer was complete
  std::uint64_t tokens = 0;       ///< generated for clients of this gateway
};

/// In the text format of Prometheus, version 0.0.4.
std::string metrics_text(
  const gateway_counts& counts,
  const std::map<core::job_id, std::shared_ptr<served_model>>& models);

} // namespace shoal::actors
