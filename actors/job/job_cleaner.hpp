// actors/job/job_cleaner.hpp -- frees the disk space of jobs that have ended.
//
// All blobs of a running job stay. Of the newest `results_kept` ended jobs that
// train the last checkpoint stays, so that `shoal attach --out` can fetch it, and of
// as many with checkpoints whose job this view does not list: it may be the view of
// another shoal, which learns of the job later. Of all others nothing stays, nor of a
// job that was taken off the list. Working folders of earlier versions (from-*, writing-*)
// are removed with their job, and at the start. The blobs that a job needs are
// listed beside its journal (jobs/<id>/blobs) when it begins, since views drop
// old jobs and a node may be away when they end; the same holds for the parts
// of its checkpoints that this peer has written (shard_list.hpp).
//
// Blobs of no job stay: a client may be about to submit one. They go when that client
// has gone without a job (left_behind()), unless another client has uploaded them, too,
// or a job needs them, or this peer has pledged them. Blobs of jobs that were written
// within `blob_age_min` stay; but the files of a served model that was uploaded go at
// once, as the next model may need their room, unless a client has uploaded them again
// (runtime/store/claimed_blobs.hpp). What was begun of a file goes with it.
//
// Threads: one at a time; remember_blobs() and clean_up() block on the disk:
//          call them from disk work.
// Errors:  removal that fails is tried again next time.
#pragma once

#include "runtime/context.hpp"
#include "runtime/core/limits.hpp"

#include <chrono>
#include <map>
#include <set>
#include <vector>

namespace shoal::core {
struct job_entry; // runtime/core/job_entry.hpp
struct view;      // runtime/core/view.hpp
} // namespace shoal::core

namespace shoal::actors {

/// Number of ended jobs that train whose last checkpoint can still be fetched. Views
/// list as many, whatever else has ended (forget_old_jobs(), cluster/wishes.cpp).
inline constexpr std::size_t results_kept = core::cluster::jobs_kept_max / 2;
/// Younger blobs may belong to a submission in progress.
inline constexpr std::chrono::seconds blob_age_min{60};

/// Whether nothing but this job has to do with its files: it serves a model that was
/// uploaded, no checkpoints of a job that trains.
bool was_uploaded(const core::job_entry& entry);

/// Records which blobs a job has from the beginning.
void remember_blobs(runtime::context& node, const core::job_entry& entry);

class job_cleaner {
public:
  explicit job_cleaner(runtime::context& node) : node_(node) {}

  /// The first call also removes unfinished files of an earlier process.
  /// @param age_min blob_age_min, except in tests
  void
  clean_up(const core::view& v, std::chrono::seconds age_min = blob_age_min);

  /// The next calls of clean_up() remove these, once nobody needs them.
  void left_behind(const std::vector<core::blob_digest>& blobs) {
    left_behind_.insert(blobs.begin(), blobs.end());
  }

private:
  /// A job's checkpoints, up to the point where its log has been read.
  struct known {
    std::uint64_t next = 0;
    std::vector<core::blob_digest> checkpoints;
  };
  class pass;

  runtime::context& node_;
  std::map<core::job_id, known> known_;
  std::set<core::blob_digest> left_behind_; ///< by clients
  bool first_ = true;
};

} // namespace shoal::actors
