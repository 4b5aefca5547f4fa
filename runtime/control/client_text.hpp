// runtime/control/client_text.hpp -- why a client found no node, and what to
// do.
//
// Threads: any. Errors: none.
#pragma once

#include "runtime/control/client.hpp"

#include <string>

namespace shoal::runtime {

/// Errors on each way to a node; empty: none.
struct failed_ways {
  std::string last;      ///< of the last one that was tried
  std::string no_key;    ///< why there is no cluster key
  std::string not_there; ///< answer of a node that could have handed on the
                         ///< request
};

/// The text for the user: "no node answers in DIR: start one with ...".
std::string no_node_text(const client_config& config, const failed_ways& ways);

} // namespace shoal::runtime
