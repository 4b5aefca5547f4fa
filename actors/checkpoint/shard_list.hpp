// actors/checkpoint/shard_list.hpp -- which shards of a job this peer has put into its
// store: jobs/<id>/shards.
//
// A shard is nobody's until a manifest names it, and the manifest is another
// peer's: a process that dies, or a checkpoint that comes to nothing, would
// leave it for ever. So its name is written down before the shard is.
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

/// Where a job's list is. @param folder of the job: jobs/<id>
std::filesystem::path shard_list_of(const std::filesystem::path& folder);
std::filesystem::path job_folder(runtime::context& node, core::job_id job);

std::error_code
note_shard(runtime::context& node, core::job_id job, const listed_shard& shard);

std::vector<listed_shard> read_shards(const std::filesystem::path& list);

/// Removes the blobs of those that `wanted` does not want, unless they are in
/// `needed` or another wanted one is the same, and forgets them.
void drop_shards(runtime::context& node, core::job_id job,
                 const std::function<bool(std::uint64_t step)>& wanted,
                 const std::set<core::blob_digest>& needed);

} // namespace shoal::actors
