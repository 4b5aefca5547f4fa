// actors/checkpoint/needed_checkpoints.hpp -- which checkpoints on this node the
// islands of its jobs need.
//
// Equal files are one blob: all jobs of a model share its small files, and jobs
// that run the same training share whole checkpoints. So an island that drops a
// checkpoint keeps the files that another one needs:
// - of an island that runs here, those of the checkpoints that it holds, fetches
//   or restores, and the shards that it lists (shard_list.hpp); until it has
//   said so, of all checkpoints in its log;
// - of a job that has ended, those of its last checkpoint, which is its result;
// - of a job that serves checkpoints, those of the versions that may have
//   requests, without the optimizer's.
//
// Threads: any; of_others() blocks on the disk.
#pragma once

#include "runtime/core/ids.hpp"

#include <map>
#include <mutex>
#include <set>

namespace shoal::core {
struct job_entry; // runtime/core/job_entry.hpp
struct view;      // runtime/core/view.hpp
} // namespace shoal::core

namespace shoal::runtime {
class context;
}

namespace shoal::actors {

class needed_checkpoints {
public:
  /// From now on the island needs these manifests, with their files.
  void say(const core::island_id& by, std::set<core::blob_digest> manifests);

  /// The blobs that all islands except `self` need.
  [[nodiscard]] std::set<core::blob_digest>
  of_others(runtime::context& node, const core::view& v,
            const core::island_id& self);

private:
  using digests = std::set<core::blob_digest>;
  digests manifests(runtime::context& node, const core::job_entry& job,
                    const core::island_id& self);

  std::mutex mutex_; ///< of all below
  std::map<core::island_id, digests> said_;
  std::map<core::job_id, digests> results_; ///< of jobs that have ended
};

} // namespace shoal::actors
