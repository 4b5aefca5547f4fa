// apps/common/json_documents.hpp -- what commands print with --json, field by field.
//
// Each list comes from the table by which the command itself writes (see
// runtime/files/json_table.hpp); `shoal reference` prints them. What `status` and
// `jobs` print is the node's: runtime/node/status.hpp. `plan` has plan_table.hpp,
// and the events of a job are in runtime/jobs/event_json.hpp.
#pragma once

#include "runtime/files/field_text.hpp"
#include "runtime/jobs/event_json.hpp" // event_text

#include <vector>

namespace shoal::apps {

/// What `train` and `attach` say themselves, between the events of the job.
std::vector<runtime::event_text> said_events();
std::vector<runtime::event_text> node_events();
std::vector<runtime::event_text> chaos_events();
std::vector<runtime::event_text> generate_events();

std::vector<runtime::field_text> doctor_fields(); ///< of each finding
std::vector<runtime::field_text> eval_fields();
std::vector<runtime::field_text> audit_fields();

// Of `bench`: of each row, but for the pipeline.
std::vector<runtime::field_text> bench_link_fields();
std::vector<runtime::field_text> bench_all_reduce_fields();
std::vector<runtime::field_text> bench_pipeline_fields();
std::vector<runtime::field_text> bench_compute_fields();

} // namespace shoal::apps
