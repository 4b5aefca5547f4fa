// runtime/node/state/other_shoals.hpp -- other shoals of this cluster in a status.
//
// Threads: any.
#pragma once

#include "runtime/files/json_table.hpp"
#include "runtime/node/state/known_nodes.hpp"

#include <map>
#include <vector>

namespace shoal::runtime {

/// A list with an object for each shoal that connected peers report; empty
/// without a view.
json_value
other_shoals_json(const core::view* ours,
                  const std::map<core::peer_id, shoal_of_peer>& strangers);
std::vector<field_text> other_shoal_fields(); ///< of each of its objects

} // namespace shoal::runtime
