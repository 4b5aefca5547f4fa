// actors/serving/version_blobs.hpp -- frees the disk space of a version that is
// not served any more.
//
// Threads: any; remove_version() blocks on the disk. Errors: what cannot be removed
// now goes when the job that made it has ended (job_cleaner.hpp).
#pragma once

#include "actors/job/job.hpp"

namespace shoal::actors {

/// Removes the version's files from the own store, but for those that jobs of the
/// view need.
void remove_version(runtime::context& node, needed_checkpoints& needed,
                    const core::view& view, const core::blob_digest& manifest);

/// The same on the disk queue; the origin of the job stays as long as the job.
void drop_version(runtime::context& node, const job_config& config,
                  std::shared_ptr<const core::view> view,
                  const core::blob_digest& manifest);

} // namespace shoal::actors
