// apps/common/json_documents.hpp -- the output of commands with --json, by
// field.
//
// Each list comes from the table that the command itself writes from (see
// runtime/files/json_table.hpp); `shoal reference` prints them. The output of
// `status` and `jobs` comes from the node: runtime/node/status/status.hpp. `plan` has
// plan_table.hpp, and the events of a job are in runtime/jobs/event_json.hpp.
#pragma once

#include "runtime/files/field_text.hpp"
#include "runtime/jobs/event_json.hpp" // event_text

#include <vector>

namespace shoal::apps {

/// Events that `train` and `attach` add between the events of the job.
std::vector<runtime::event_text> said_events();
std::vector<runtime::event_text> node_events();
std::vector<runtime::event_text> chaos_events();
std::vector<runtime::event_text> generate_events();
std::vector<runtime::event_text> serve_events();

std::vector<runtime::field_text> doctor_fields(); ///< of each finding
std::vector<runtime::field_text> eval_fields();
std::vector<runtime::field_text> pull_fields();
std::vector<runtime::field_text> audit_fields();

// For `bench`: of each row, except those of the pipeline.
std::vector<runtime::field_text> bench_link_fields();
std::vector<runtime::field_text> bench_all_reduce_fields();
std::vector<runtime::field_text> bench_pipeline_fields();
std::vector<runtime::field_text> bench_compute_fields();

} // namespace shoal::apps
