// runtime/observe/metrics_jsonl.hpp -- a run's events, one JSON line each.
//
// Threads: one at a time. Every line is passed to the system at once, so a
//          reader sees whole lines.
// Errors:  those of the file system.
#pragma once

#include "runtime/jobs/job_log.hpp"

#include <filesystem>
#include <system_error>

namespace shoal::runtime {

class metrics_jsonl {
public:
  /// Appends to `file`, whose folder exists. Throws std::system_error.
  explicit metrics_jsonl(const std::filesystem::path& file);
  ~metrics_jsonl();
  metrics_jsonl(const metrics_jsonl&) = delete;
  metrics_jsonl& operator=(const metrics_jsonl&) = delete;

  [[nodiscard]] std::error_code add(const job_event& event);

private:
  int file_;
};

} // namespace shoal::runtime
