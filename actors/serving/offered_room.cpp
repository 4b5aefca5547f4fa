// actors/serving/offered_room.cpp -- sums up files of served models.
#include "actors/serving/offered_room.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/job/job_cleaner.hpp"
#include "runtime/context.hpp"
#include "runtime/core/assignment.hpp"
#include "runtime/core/view.hpp"
#include "runtime/store/store.hpp"

#include <cstdint>
#include <set>

namespace shoal::actors {

using core::blob_digest;

namespace {

/// Bytes on the disk of files of all served jobs of a view, and of uploaded models
/// that have ended: these are about to be removed.
std::uint64_t served_bytes(const core::view& v, runtime::store& blobs) {
  std::set<blob_digest> seen;
  std::uint64_t sum = 0;
  for (const core::job_entry& job : v.jobs) {
    if (job.kind != core::job_kind::serve
        || (job.state != core::job_state::running && !was_uploaded(job)))
      continue;
    for (const core::model_version& version : core::served_versions(job)) {
      if (!blobs.contains(version.manifest))
        continue;
      if (const auto listed = read_manifest(version.manifest, blobs))
        for (const manifest_file& f : listed->files)
          if (!of_optimizer(f.name) && blobs.contains(f.digest)
              && !blobs.in_memory(f.digest) && seen.insert(f.digest).second)
            sum += f.bytes;
    }
  }
  return sum;
}

} // namespace

void offer_room(runtime::context& node, const core::view& v, bool refused) {
  runtime::store& blobs = node.blobs();
  const runtime::store::space room = blobs.room();
  if (room.all_bytes > 0)
    node.offer_disk(served_bytes(v, blobs) + blobs.unfinished_bytes()
                      + room.to_fill(),
                    refused);
}

} // namespace shoal::actors
