// runtime/hub/pull.hpp -- a model of the hub, as a folder of the cache.
//
// Start here. The commit's files are listed, those that a model needs are
// chosen, and those that the cache lacks are downloaded, small ones first and
// weights last. A snapshot with all weights has the rest, too.
//
// Threads: one. Processes: any at a time, they share the cache.
// Errors:  a failure says what to do; also where the watch ended it.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/watch.hpp"
#include "runtime/hub/hub_name.hpp"
#include "runtime/hub/hub_settings.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace shoal::hub {

/// Free space that a download leaves on the disk.
inline constexpr std::uint64_t reserve_bytes = std::uint64_t{64} << 20;

struct pull_request {
  hub_name name;
  /// Asks the hub also where the cache has the model: the revision may have
  /// moved on. Without it, no network is needed for what is there.
  bool update = true;
  bool weights = true; ///< else only what describes the model
};

struct pulled {
  std::filesystem::path path; ///< of the snapshot, or of the file in GGUF
  std::string commit;
  std::size_t files = 0;           ///< of the model, that were listed
  std::uint64_t bytes = 0;         ///< of them
  std::uint64_t fetched_bytes = 0; ///< of those that were not in the cache
  bool listed = false; ///< false: the hub was not asked, or did not answer
  std::string notice;  ///< why it did not; empty: there is nothing to say
};

/// @param told of the bytes of all files
model::result<pulled>
pull(const hub_settings& settings, const pull_request& request,
     const model::watch& told);

} // namespace shoal::hub
