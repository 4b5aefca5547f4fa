// runtime/node/status/status_serving.hpp -- how busy a node and its served models
// are, in a status.
//
// Threads: any.
#pragma once

#include "runtime/core/serving/served_load.hpp"
#include "runtime/files/json_table.hpp"
#include "runtime/node/status/node_resources.hpp"

#include <vector>

namespace shoal::runtime {

json_value resources_json(const node_resources& has);
std::vector<field_text> resource_fields();

/// A list with an object for each model.
json_value serving_json(const std::vector<core::served_load>& models);
std::vector<field_text> serving_fields(); ///< of each of its objects

} // namespace shoal::runtime
