// runtime/node/status/status_discovery.hpp -- beacons, nodes that were met but are of
// other shoals, and members that are gone, in a status.
//
// Threads: any.
#pragma once

#include "runtime/files/json_table.hpp"
#include "runtime/node/status/status.hpp"

#include <vector>

namespace shoal::runtime {

/// An object: beacons by what became of them.
json_value beacons_json(const status_input& in);
std::vector<field_text> beacon_fields();

/// A list with an object for each node.
json_value apart_json(const status_input& in);
std::vector<field_text> apart_fields(); ///< of each of its objects

/// The same of the members that are gone.
json_value former_json(const status_input& in);
std::vector<field_text> former_fields();

} // namespace shoal::runtime
