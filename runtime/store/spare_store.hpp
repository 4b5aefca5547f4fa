// runtime/store/spare_store.hpp -- a store that goes on in a second folder, on
// another disk, when its own disk refuses.
//
// For a node that ends with its store: once the disk of `folder` has refused a
// blob, that one fails and those that follow are written to `spare`. Blobs in
// both are found.
#pragma once

#include "runtime/store/store.hpp"

namespace shoal::runtime {

/// As store::open(). @param spare is made when it is needed; empty: none
/// @param bytes_max of all files in `folder`, as if its disk were that large; 0: as
/// many as fit
std::unique_ptr<store>
open_store(const std::filesystem::path& folder,
           const std::filesystem::path& spare, std::uint64_t bytes_max = 0);

} // namespace shoal::runtime
