// runtime/jobs/event_json.hpp -- a job's event as one line of JSON.
//
// The same lines everywhere: metrics.jsonl, the journal of a job, and what
// `shoal train --json` prints. A number that JSON cannot say (not finite) is
// null and comes back as not-a-number.
//
// A step's data names the samples that it used: a digest of 64 bits in
// hexadecimal digits (runtime/core/training/ledger.hpp).
//
// Its bubble_percent is the part of its computing phase, from its begin
// to the last item of the slowest peer, in which peers had nothing to compute:
// 100 - 100 * (sum of what they computed) / (peers * phase), by each peer's own
// clock. Peers that share processor cores compute longer, not less: where there
// are more peers than cores it says less than it seems to. computing_seconds is
// that phase on the peer that reports the run, reducing_seconds what it waited
// from there until all gradients were reduced; what is left of a step is the
// vote and the optimizer. None of them is written where it is not known.
//
// The fields of each kind of event are one table, which writes the lines and
// which `shoal reference` prints.
//
// Threads: any. Errors: parse answers false for what is no event.
#pragma once

#include "runtime/files/field_text.hpp"
#include "runtime/jobs/job_log.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace shoal::runtime {

/// Without the line's end.
std::string to_json_line(const job_event& event);

/// A kind of event, as people read of it.
struct event_text {
  std::string name;
  std::string meaning;
  std::vector<field_text> fields;
};
std::vector<event_text> event_texts();

[[nodiscard]] bool from_json_line(std::string_view line, job_event& event);

} // namespace shoal::runtime
