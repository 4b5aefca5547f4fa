// apps/remote/found_job.hpp -- the job that a user means.
//
// Threads: pure functions.
#pragma once

#include "apps/remote/status_json.hpp"
#include "runtime/core/ids.hpp"

#include <string>

namespace shoal::apps {

/// A line for a job in a list to choose from. @pre from parse_status()
std::string job_line(const status_json& job);

struct found_job {
  core::job_id id = 0;
  std::string text; ///< its id as text
  std::string wrong;
};

enum class which { any, running_first, running };

/// Finds the job that a user means: an id, a name, or else a prefix of an id (of
/// four digits at least). If
/// several match, they are listed instead of guessing. A command that watches a
/// job prefers a running one to those that have ended (`running_first`). A
/// command for `running` jobs uses others only to report that they have ended.
found_job find_job(const status_json& status, const std::string& wanted,
                   which among = which::any);

} // namespace shoal::apps
