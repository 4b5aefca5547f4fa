// actors/blob_set.hpp -- makes sure that a set of blobs is in the own store.
//
// Fetches what is missing from any of the holders, one blob after the other;
// a manifest's files are known only when the manifest is here.
//
// Threads: any; `done` runs on some thread and only posts a message.
// Errors:  the first failure ends it.
#pragma once

#include "runtime/core/ids.hpp"

#include <functional>
#include <system_error>
#include <vector>

namespace shoal::runtime {
class context;
}

namespace shoal::actors {

struct blob_set {
  std::vector<core::blob_digest> blobs;     ///< single ones
  std::vector<core::blob_digest> manifests; ///< with all their files
};

/// Everything in the store that `set` asks for?
bool have_all(runtime::context& node, const blob_set& set);

void fetch_all(runtime::context& node, blob_set set,
               std::vector<core::peer_id> holders,
               std::function<void(std::error_code)> done);

} // namespace shoal::actors
