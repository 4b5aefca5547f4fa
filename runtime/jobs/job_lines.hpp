// runtime/jobs/job_lines.hpp -- the lines of jobs' logs on the disk.
//
// Each job has <folder>/<its id>/events.jsonl, to which lines are appended.
// Lines that the disk refuses are kept, in order, and written before all later
// ones, as soon as there is room. Beyond refused_bytes_max the oldest are
// dropped; the log then gets a line with their number. While lines wait there
// is an empty file `unwritten` beside the log: if the process ends before they
// are written, the next one writes to the log that lines are missing.
//
// Threads: any. `say` runs on the thread that writes, without a lock of this
//          object.
// Errors:  reported once when the disk begins to refuse, and when it has
//          recovered.
// Cost:    append() opens the file and reads its last byte: for the disk's
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
  /// Limit for all jobs together: some 15,000 steps.
  static constexpr std::size_t refused_bytes_max = std::size_t{4} << 20;

  /// @param say gets lines for users; may be empty
  job_lines(std::filesystem::path folder,
            std::function<void(const std::string&)> say);

  void append(core::job_id job, std::string line);
  /// Tries again to write refused lines.
  void retry();
  /// Whether lines are known to wait.
  bool waits() const noexcept { return failing_; }
  /// The path of a job's log.
  std::filesystem::path file(core::job_id job) const;
  /// Whether an earlier process has ended while lines of the job waited; false
  /// once a line in the log says so, written by append().
  bool lacks_lines(core::job_id job);

private:
  struct refused {
    std::deque<std::string> lines; ///< oldest first
    std::uint64_t dropped = 0;     ///< number dropped before these
    bool marked = false;           ///< the file `unwritten` exists
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
  std::atomic<bool> failing_{false}; ///< and that was reported
};

} // namespace shoal::runtime
