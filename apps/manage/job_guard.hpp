// apps/manage/job_guard.hpp -- a job that has just been submitted, and ends unless what
// it is for succeeds.
//
//   job_guard guard(client, job); ... -> release(), or stop(), or its end
//
// Threads: blocking; the client's. Errors: stop() says that the job may still run; the
// destructor cannot.
#pragma once

#include "runtime/control/client.hpp"

#include <string>
#include <utility>

namespace shoal::apps {

class job_guard {
public:
  /// @pre `client` outlives it
  job_guard(runtime::client& client, core::job_id job)
    : client_(client), job_(job) {}
  ~job_guard() {
    try {
      static_cast<void>(stop());
    } catch (const std::exception&) {
      // of memory for a text: the job has been asked to end, or no node answers
    }
  }
  job_guard(const job_guard&) = delete;
  job_guard& operator=(const job_guard&) = delete;

  /// The job goes on.
  void release() { job_ = 0; }
  /// Stops the job now; over another connection if the first one is lost.
  /// @returns that the job may still run, and why; "": it ends
  std::string stop();

private:
  runtime::client& client_;
  core::job_id job_; ///< 0: there is nothing to be done
};

} // namespace shoal::apps
