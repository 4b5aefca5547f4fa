// runtime/control/client_keys.hpp -- the cluster keys that a client may use.
//
// With a key file that is named: that one, and then what the node of this machine
// keeps that the client has asked before, as its shoal may have replaced its key (a
// further client of the same command does not know which one that was, and tries those
// of all nodes here).
// Otherwise the copies that this user's nodes keep in their data directories (of a
// node that is named: its own alone), then the user's own key file. A client tries
// them one after the other, as which of the shoals a peer belongs to is known only
// from its answer.
//
// Threads: any. Errors: a key file that cannot be read is left out; if none is left,
// `why` is the reason of the last one.
#pragma once

#include "runtime/control/client.hpp"
#include "transport/tls/identity.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace shoal::runtime {

struct client_keys {
  std::vector<transport::tls::shared_key> all; ///< to try, in this order
  std::string why;                             ///< there is none; else empty
};

/// Makes none, since nobody would know a new key. @param asked  the data directory of
/// that node; empty: there was none
client_keys
keys_for(const client_config& config, const std::filesystem::path& asked = {});

/// Why the key file that the user has named cannot be used; "": it can, none is,
/// or it has been used before.
std::string named_key_fault(const client_config& config);

} // namespace shoal::runtime
