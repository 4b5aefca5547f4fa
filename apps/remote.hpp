// apps/remote.hpp -- which node a command talks to.
#pragma once

#include "apps/commands.hpp"
#include "runtime/client.hpp"

namespace shoal::apps {

/// The local node's socket, or the nodes that --peer names, by TLS.
runtime::client_config client_of(const node_address& at);

} // namespace shoal::apps
