// apps/chaos/chaos_job.hpp -- a job on a shoal whose nodes come and go.
//
// Submits a run to the node of a data directory and follows it on a thread of
// its own, moving among the nodes beside that one as they die. Events are
// handed over in order; descriptor() is readable when there are some.
//
// Threads: one, beside its own.
// Errors:  std::runtime_error.
#pragma once

#include "runtime/control/client.hpp"
#include "runtime/core/job_entry.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/jobs/job_log.hpp"

#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace shoal::apps {

class chaos_job final : private runtime::follow_handler {
public:
  /// Submits. @param text the corpus, serialised
  chaos_job(const std::filesystem::path& data_dir, core::job_entry entry,
            const std::vector<std::byte>& text);
  /// Stops following; some node must run, or it takes patience.
  ~chaos_job() override;
  chaos_job(const chaos_job&) = delete;
  chaos_job& operator=(const chaos_job&) = delete;

  int descriptor() const { return bell_.get(); }
  /// What has come since the last call. Throws if no node answers any more.
  std::vector<runtime::job_event> take();

  /// What the node of this directory knows of the job; if it does not answer,
  /// another. A node that was out of the shoal lacks what was said meanwhile.
  std::vector<runtime::job_event>
  known_at(const std::filesystem::path& data_dir) const;

  /// Ends the job at once, without a checkpoint.
  void cancel();

private:
  bool on(const runtime::job_event& event) override;
  bool stops() override { return stop_; }
  void follow();
  void ring() const;

  std::filesystem::path data_dir_;
  core::job_id job_ = 0;
  runtime::posix::descriptor bell_;
  std::mutex mutex_;
  std::vector<runtime::job_event> events_;
  std::string wrong_;
  std::atomic<bool> stop_{false};
  std::thread thread_; ///< last: it uses the others
};

} // namespace shoal::apps
