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

/// Files with which training jobs have begun: these stay as long as a job runs.
std::set<blob_digest>
training_files(const core::view& v, runtime::store& blobs) {
  std::set<blob_digest> out;
  for (const core::job_entry& job : v.jobs)
    if (job.kind == core::job_kind::train
        && job.state == core::job_state::running && blobs.contains(job.origin))
      if (const auto listed = read_manifest(job.origin, blobs))
        for (const manifest_file& f : listed->files)
          out.insert(f.digest);
  return out;
}

/// Bytes on the disk of files of all served jobs of a view, and of uploaded models
/// that have ended: these are about to be removed, but for what others keep.
std::uint64_t served_bytes(const core::view& v, runtime::store& blobs) {
  const std::set<blob_digest> kept = training_files(v, blobs);
  std::set<blob_digest> seen;
  std::uint64_t sum = 0;
  for (const core::job_entry& job : v.jobs) {
    const bool runs = job.state == core::job_state::running;
    if (job.kind != core::job_kind::serve || (!runs && !was_uploaded(job)))
      continue;
    for (const core::model_version& version : core::served_versions(job)) {
      if (!blobs.contains(version.manifest))
        continue;
      if (const auto listed = read_manifest(version.manifest, blobs))
        for (const manifest_file& f : listed->files)
          if (!of_optimizer(f.name) && (runs || !kept.contains(f.digest))
              && blobs.contains(f.digest) && !blobs.in_memory(f.digest)
              && seen.insert(f.digest).second)
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
