// runtime/control/client_text.hpp -- why a client has found no node, and what to do.
//
// Threads: any. Errors: none.
#pragma once

#include "runtime/control/client.hpp"

#include <string>

namespace shoal::runtime {

/// What went wrong on each way to a node; empty: nothing.
struct failed_ways {
  std::string last;      ///< the last one that was tried
  std::string no_key;    ///< why there is no cluster key
  std::string not_there; ///< what a node says that might have handed on
};

/// For a person: "no node answers in DIR: start one with ...".
std::string no_node_text(const client_config& config, const failed_ways& ways);

} // namespace shoal::runtime
