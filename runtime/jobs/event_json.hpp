// runtime/jobs/event_json.hpp -- a job's event as one line of JSON.
//
// The same lines everywhere: metrics.jsonl, the journal of a job, and the
// output of `shoal train --json`. A number that JSON cannot express (not
// finite) is null and is read back as not-a-number.
//
// A step's data identifies the samples that it used: a digest of 64 bits in
// hexadecimal digits (runtime/core/training/ledger.hpp).
//
// Its bubble_percent is the share of its computing phase, from its start to the
// last item of the slowest peer, in which peers had nothing to compute:
// 100 - 100 * (sum of their computing times) / (peers * phase), by each peer's
// own clock. Peers that share processor cores compute longer, not less: with
// more peers than cores the value is lower than the true share.
// computing_seconds is that phase on the reporter of the run, reducing_seconds
// its wait from there until all gradients were reduced; the rest of a step is
// the vote and the optimizer. Each of them is left out where it is unknown.
//
// The fields of each kind of event are one table, which writes the lines and
// which `shoal reference` prints.
//
// Threads: any. Errors: parse returns false for text that is no event.
#pragma once

#include "runtime/files/field_text.hpp"
#include "runtime/jobs/job_log.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace shoal::runtime {

/// Without a line end.
std::string to_json_line(const job_event& event);

/// A kind of event, as documented for users.
struct event_text {
  std::string name;
  std::string meaning;
  std::vector<field_text> fields;
};
std::vector<event_text> event_texts();

[[nodiscard]] bool from_json_line(std::string_view line, job_event& event);

} // namespace shoal::runtime
