// runtime/control/client_keys.hpp -- the cluster keys that a client may use.
//
// Threads: any. Errors: a key file that cannot be read is left out.
#pragma once

#include "runtime/control/client.hpp"
#include "transport/tls/identity.hpp"

#include <string>
#include <vector>

namespace shoal::runtime {

struct client_keys {
  std::vector<transport::tls::shared_key> all; ///< to try, the likeliest first
  std::string why;                             ///< there is none; else empty
};

/// Makes none, since nobody would know a new key.
client_keys keys_for(const client_config& config);

} // namespace shoal::runtime
