// runtime/metrics/event_json.hpp -- a job's event as one line of JSON.
//
// The same lines everywhere: metrics.jsonl, the journal of a job, and what
// `shoal train --json` prints. A number that JSON cannot say (not finite) is
// null and comes back as not-a-number.
//
// Threads: any. Errors: parse answers false for what is no event.
#pragma once

#include "runtime/job_log.hpp"

#include <string>
#include <string_view>

namespace shoal::runtime {

/// Without the line's end.
std::string to_json_line(const job_event& event);

[[nodiscard]] bool from_json_line(std::string_view line, job_event& event);

} // namespace shoal::runtime
