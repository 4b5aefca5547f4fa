// runtime/jobs/job_journal.hpp -- the job log of a node, also on disk.
//
// Every event is kept in memory and appended as one JSON line to
// <folder>/<job, 16 hexadecimal digits>/events.jsonl, from which the journal is
// filled at the next start. An event that is there already is dropped: step,
// eval and checkpoint are identified by their step, a view by its epoch, a
// notice by step and text; `done` comes once and last, unless a later view goes on
// with the job, or names another end: then it was the end in another half of the
// shoal, and is dropped.
//
// Threads: any. Listeners run on the thread that adds and may only post.
// Errors:  lines that the disk refuses are written later; that is reported once
//          (job_lines.hpp).
#pragma once

#include "runtime/jobs/job_log.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

namespace shoal::runtime {

class device_queue;

/// How a notice begins of a node without a quorum: all of its jobs wait for that.
inline constexpr std::string_view no_quorum_text = "no quorum for view ";

class job_journal : public job_log {
public:
  /// Waits until the job has an event at position `from` or later, or has
  /// ended, or `timeout` has passed. Blocks: not for actors or progress
  /// threads.
  virtual bool wait(core::job_id job, std::uint64_t from,
                    std::chrono::milliseconds timeout) const = 0;

  /// Calls `changed` after each added event, until unlisten(), which returns
  /// when no call is in progress. Must not be called from `changed`.
  virtual std::uint64_t
  listen(std::function<void(core::job_id job)> changed) = 0;
  virtual void unlisten(std::uint64_t listener) = 0;

  virtual bool ended(core::job_id job) const = 0; ///< `done` is in the log
  virtual std::vector<core::job_id> jobs() const = 0;

  /// The newest committed step, if any is known; cheap.
  virtual std::optional<job_event> last_step(core::job_id job) const = 0;
  /// Of the last steps, as many as took pace_window; 0: none is known.
  virtual double tokens_per_s(core::job_id job) const = 0;
  /// The newest checkpoint, if any is known; cheap.
  virtual std::optional<job_event> last_checkpoint(core::job_id job) const = 0;
  /// What the job waits for, from the newest event that reports a wait, unless
  /// a step has come since. Not for a quorum: of that the node knows the end.
  virtual std::optional<job_event> awaited(core::job_id job) const = 0;
  /// The position of the next event.
  virtual std::uint64_t next(core::job_id job) const = 0;

  /// Tries again to write refused lines; to be called now and then.
  virtual void retry() = 0;

  /// Jobs kept in memory; those that ended first are dropped first, their files
  /// stay.
  static constexpr std::size_t jobs_max = 1024;
  /// A single step may be twice as fast, or slow, by what else the machine does.
  static constexpr std::chrono::seconds pace_window{10};
  /// Limit of the events that are looked at for it.
  static constexpr std::size_t pace_events_max = 1000;
  /// Longest text of an event; the rest is cut.
  static constexpr std::size_t text_bytes_max = 2048;
};

/// @param folder the parent of the jobs' folders; empty: only in memory. Throws
/// std::system_error if it cannot be made.
/// @param disk the queue that writes lines; null: they are written at once. It
/// is closed before the journal is destroyed, or runs until it is empty.
/// @param say called when the disk begins to refuse, and when it has recovered,
/// on the thread that writes; it must not call the journal. May be empty.
std::unique_ptr<job_journal>
open_job_journal(const std::filesystem::path& folder,
                 device_queue* disk = nullptr,
                 std::function<void(const std::string&)> say = {});

} // namespace shoal::runtime
