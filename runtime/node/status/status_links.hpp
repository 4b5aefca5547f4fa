// runtime/node/status/status_links.hpp -- how tensors reach each peer, in a status.
//
// Threads: any.
#pragma once

#include "runtime/files/json_table.hpp"
#include "runtime/node/status/status.hpp"

#include <vector>

namespace shoal::runtime {

/// A list with an object for each peer, and for transfers within the process.
json_value links_json(const status_input& in);
std::vector<field_text> link_fields(); ///< of each of its objects

} // namespace shoal::runtime
