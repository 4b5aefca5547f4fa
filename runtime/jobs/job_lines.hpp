// runtime/jobs/job_lines.hpp -- the lines of jobs' logs on the disk.
//
// Each job has <folder>/<its id>/events.jsonl, to which lines are appended.
// What the disk refuses is kept, in order, and written before whatever comes
// later, as soon as there is room. Of more than refused_bytes_max the oldest
// are dropped, for which the log gets a line that says how many. While lines
// wait there is an empty file `unwritten` beside the log: if the process ends
// before they are written, the next one says in the log that it lacks some.
//
// Threads: any. `say` runs on the one that writes, without a lock of this.
// Errors:  said once when the disk begins to refuse, and when it has recovered.
// Cost:    append() opens the file and looks at its last byte: for the disk's
//          thread.
#pragma once

#include "runtime/core/ids.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <system_error>

namespace shoal::runtime {

class job_lines {
public:
  /// Kept of all jobs together: some 15,000 steps.
  static constexpr std::size_t refused_bytes_max = std::size_t{4} << 20;

  /// @param say for people; may be empty
  job_lines(std::filesystem::path folder,
            std::function<void(const std::string&)> say);

  void append(core::job_id job, std::string line);
  /// Tries again what was refused.
  void retry();
  /// Whether there is any, as far as is known.
  bool waits() const noexcept { return failing_; }
  /// Where a job's log is.
  std::filesystem::path file(core::job_id job) const;
  /// A process before this one has ended while lines of the job waited: once
  /// it has been said in the log, by append(), that is over.
  bool lacks_lines(core::job_id job);

private:
  struct refused {
    std::deque<std::string> lines; ///< oldest first
    std::uint64_t dropped = 0;     ///< before these
    bool marked = false;           ///< the file `unwritten` is there
  };
  void keep(core::job_id job, std::string line);
  std::string write_refused();
  std::error_code write_all_of(core::job_id job, refused& r);
  std::error_code write(core::job_id job, const std::string& line);
  std::filesystem::path mark(core::job_id job) const;

  std::filesystem::path folder_;
  std::function<void(const std::string&)> say_;
  std::mutex mutex_; ///< guards what follows, and the files
  std::map<core::job_id, refused> refused_;
  std::size_t refused_bytes_ = 0;
  std::uint64_t dropped_ = 0;        ///< since the disk began to refuse
  std::atomic<bool> failing_{false}; ///< and it was said
};

} // namespace shoal::runtime
