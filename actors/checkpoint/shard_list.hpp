// actors/checkpoint/shard_list.hpp -- list of the shards that this peer has put
// into its store for an island of a job: jobs/<id>/shards, of islands after the
// first jobs/<id>/shards.<island>.
//
// A shard belongs to no checkpoint until a manifest names it, and the manifest
// is made by another peer: if a process dies, or a checkpoint fails, the shard
// would stay for ever. So its name is recorded before the shard is written.
//
// File:    a line for each shard, "<step> <sha256>"; torn lines are skipped.
// Threads: blocking; on the disk queue.
// Errors:  of the file system.
#pragma once

#include "runtime/core/ids.hpp"

#include <filesystem>
#include <functional>
#include <set>
#include <system_error>
#include <vector>

namespace shoal::runtime {
class context;
}

namespace shoal::actors {

struct listed_shard {
  std::uint64_t step = 0;
  core::blob_digest digest{};
};

/// The path of an island's list. @param folder of the job: jobs/<id>
std::filesystem::path
shard_list_of(const std::filesystem::path& folder, std::uint32_t island);
/// The lists of all islands that have one.
std::vector<std::filesystem::path>
shard_lists_of(const std::filesystem::path& folder);
std::filesystem::path job_folder(runtime::context& node, core::job_id job);

std::error_code note_shard(runtime::context& node, const core::island_id& id,
                           const listed_shard& shard);

std::vector<listed_shard> read_shards(const std::filesystem::path& list);

/// Removes the blobs of shards whose step `wanted` refuses from the store and
/// the list, unless they are in `needed` or equal a wanted one.
void drop_shards(runtime::context& node, const core::island_id& id,
                 const std::function<bool(std::uint64_t step)>& wanted,
                 const std::set<core::blob_digest>& needed);

} // namespace shoal::actors
