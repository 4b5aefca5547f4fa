// actors/job/job_cleaner.hpp -- gives back the disk space of jobs that have ended.
//
// Of a job that runs everything stays. Of the newest `results_kept` that have
// ended the last checkpoint stays, so that `shoal attach --out` can fetch it;
// of all others nothing does. Working folders of earlier versions (from-*,
// writing-*) go with their job, and at the start. What a job needs is written
// down beside its journal (jobs/<id>/blobs) when it begins, since views forget
// old jobs and a node may be away when they end; and so is what this peer has
// written of its checkpoints (shard_list.hpp).
//
// Blobs that are no job's stay: somebody may be about to submit one. So does
// what was written within `blob_age_min`.
//
// Threads: one at a time; remember_blobs() and clean_up() block on the disk:
//          call them from disk work.
// Errors:  what cannot be removed is tried again next time.
#pragma once

#include "runtime/context.hpp"

#include <chrono>
#include <map>
#include <vector>

namespace shoal::actors {

/// Jobs that have ended whose last checkpoint can still be fetched.
inline constexpr std::size_t results_kept = 8;
/// Younger blobs may belong to a submission under way.
inline constexpr std::chrono::seconds blob_age_min{60};

/// Writes down which blobs a job has from the beginning.
void remember_blobs(runtime::context& node, const core::job_entry& entry);

class job_cleaner {
public:
  explicit job_cleaner(runtime::context& node) : node_(node) {}

  /// The first call also removes what an earlier process was writing.
  /// @param age_min blob_age_min, but for tests
  void
  clean_up(const core::view& v, std::chrono::seconds age_min = blob_age_min);

private:
  /// A job's checkpoints, as far as its log has been read.
  struct known {
    std::uint64_t next = 0;
    std::vector<core::blob_digest> checkpoints;
  };
  class pass;

  runtime::context& node_;
  std::map<core::job_id, known> known_;
  bool first_ = true;
};

} // namespace shoal::actors
