// runtime/node/status/status_jobs.hpp -- what a node knows of jobs, in a status.
//
// job_json(), waits_for() and job_fields() of status.hpp are in its source, too.
//
// Threads: any.
#pragma once

#include "runtime/files/json_table.hpp" // json_value
#include "runtime/node/status/status.hpp"

namespace shoal::runtime {

/// A list with an object for each job of the view.
json_value jobs_json(const status_input& in);

} // namespace shoal::runtime
