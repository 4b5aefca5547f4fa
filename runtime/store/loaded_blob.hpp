// runtime/store/loaded_blob.hpp -- the bytes of a blob, mapped or in memory.
//
// Threads: any. Errors: those of the file system.
#pragma once

#include "runtime/store/store.hpp"

namespace shoal::runtime {

/// Maps a file. @returns null and `error` if that fails
std::shared_ptr<const blob>
map_blob(const std::filesystem::path& file, std::error_code& error);

/// A blob in memory, for when the disk refuses to write.
std::shared_ptr<const blob> blob_of(std::vector<std::byte> bytes);

} // namespace shoal::runtime
